#!/usr/bin/env python3
"""Asks a router the questions on standard input, one a line, and prints a JSON line for each.

usage: ask.py [URL] <QUESTIONS     NEXUS_KEY is the API key, where the router has some
"""
import json
import os
import sys
import urllib.error
import urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8002/mcp"


def ask(query, **arguments):
    """Returns the structured content of process_query. It takes its other arguments, such as servers or context."""
    call = {"name": "process_query", "arguments": {"query": query, **arguments}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if "NEXUS_KEY" in os.environ:
        headers["Authorization"] = "Bearer " + os.environ["NEXUS_KEY"]
    try:
        with urllib.request.urlopen(urllib.request.Request(URL, body, headers), timeout=600) as response:
            reply = json.load(response)
    except urllib.error.HTTPError as refusal:
        raise RuntimeError(f"{refusal.code}: {refusal.read().decode(errors='replace')}") from None
    if "error" in reply:
        raise RuntimeError(reply["error"]["message"])
    if reply["result"].get("isError"):
        raise RuntimeError(reply["result"]["content"][0]["text"])
    return reply["result"]["structuredContent"]


failed = False
for line in filter(None, map(str.strip, sys.stdin)):
    try:
        content = ask(line)
        found = {"query": line, "answer": content["answer"], "tools": [step["tool"] for step in content["steps"]]}
    except (OSError, RuntimeError) as error:
        failed, found = True, {"query": line, "error": str(error)}
    print(json.dumps(found), flush=True)
sys.exit(failed)
