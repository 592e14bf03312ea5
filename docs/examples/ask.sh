#!/bin/sh
# Asks a router a question over HTTP and prints the answer. Needs curl and jq.
# usage: ask.sh QUESTION [URL]     NEXUS_KEY is the API key, where the router has some
set -eu
question=$1
url=${2:-http://127.0.0.1:8002/mcp}

body=$(jq -n --arg query "$question" '{
	jsonrpc: "2.0", id: 1, method: "tools/call",
	params: {name: "process_query", arguments: {query: $query}}
}')
reply=$(printf '%s' "$body" | curl --silent --show-error --fail-with-body "$url" \
	--header 'Content-Type: application/json' --header 'Accept: application/json' \
	${NEXUS_KEY:+--header "Authorization: Bearer $NEXUS_KEY"} --data @-)

# A request that is refused has an error, a question that is refused a result with isError.
printf '%s' "$reply" | jq --raw-output --exit-status '
	if .error then "error: \(.error.message)\n" | halt_error(1)
	elif .result.isError then "error: \(.result.content[0].text)\n" | halt_error(1)
	else .result.structuredContent | .answer, (.unmet[]? | "not done: \(.text) (\(.reason))") end'
