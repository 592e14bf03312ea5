#!/usr/bin/env bash
# mutate.sh [PACKAGE ...] changes a sample of expressions in each package, one at a time, and reports which changes
# the tests of that package do not notice; one without tests has those of the nearest package above it. Environment: SEED
# chooses the sample, MUTANTS its size in each package.
#
# gremlins makes and runs the mutants. It has no sampling, so the sample is given to it as a diff: a repository of its
# own holds each package with the sampled lines altered, and only the mutants on those lines run. A folder with a
# command named go comes first in gremlins' PATH (see wrap), because gremlins tests all packages below the one that
# it is told, skips what a coverage profile omits, and takes a mutant that does not compile for one that was killed.
#
# A mutant whose tests do not end in TIMEOUT times their usual time is killed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

SEED=${SEED:-1} MUTANTS=${MUTANTS:-20} WORKERS=${WORKERS:-1} TIMEOUT=${TIMEOUT:-5}
gremlins=github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0

for tool in git jq shuf; do command -v $tool >/dev/null || { echo "$tool is missing: install it" >&2; exit 2; }; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOBIN=$work go install "$gremlins"
GO_PROGRAM=$(command -v go)
module=$(go list -m)
export GO_PROGRAM GOFLAGS="-count=1 -trimpath -vet=off"

# wrap writes the command go that gremlins runs. It tests one package alone. It declares every line as covered, because
# profiles omit the expressions of case clauses and constants, and gremlins then skips them. It exits with 2, which
# means not viable, where a mutant does not compile. The usual time of the tests, which gremlins takes first,
# has to include the time to compile a changed file as each mutant does, and no more than that: LISTING compiles
# everything before, and the run that is timed changes a comment.
wrap() {
	mkdir "$work/bin"
	cat >"$work/bin/go" <<'WRAP'
#!/usr/bin/env bash
unset GIT_DIR GIT_WORK_TREE
PATH=${PATH#*:}
[[ $1 == test ]] || exec "$GO_PROGRAM" "$@"
if [[ $2 == -cover ]]; then
	{ echo "mode: set"; printf "$PACKAGE/%s:1.1,1000000.1 1 1\n" $FILES; } >"$4"
	[[ -z ${LISTING:-} ]] || exec "$GO_PROGRAM" test -run '^$' "$TESTS"
	file=$("$GO_PROGRAM" list -f '{{.Dir}}' "$PACKAGE")/${FILES%% *}
	{ cat "$file"; echo "// $RANDOM $RANDOM"; } >"${0%/*}/changed"
	echo "{\"Replace\":{\"$file\":\"${0%/*}/changed\"}}" >"${0%/*}/overlay"
	exec "$GO_PROGRAM" test -overlay "${0%/*}/overlay" "$TESTS"
fi
output=$("$GO_PROGRAM" "${@:1:$#-1}" "$TESTS" 2>&1)
status=$?
[[ $output != *"[build failed]"* ]] || exit 2
exit $status
WRAP
	chmod +x "$work/bin/go"
}

# tested FOLDER prints the nearest folder with tests, from FOLDER upwards; . if there is none.
tested() {
	local folder=$1
	until [[ $folder == . || $(go list -e -f '{{or .TestGoFiles .XTestGoFiles}}' "./$folder") != "[]" ]]; do folder=$(dirname "$folder"); done
	echo "$folder"
}

# unleash FOLDER OUTPUT [OPTION ...] runs gremlins on the files of FOLDER, without the folders below.
unleash() {
	local files
	files=$(go list -f '{{join .GoFiles " "}}' "./$1")
	FILES=$files PACKAGE=$module/$1 TESTS=$module/$tests PATH=$work/bin:$PATH "$work/gremlins" unleash "./$1" --silent --output "$2" \
		--exclude-files / --workers "$WORKERS" --timeout-coefficient "$TIMEOUT" \
		--invert-negatives=false --invert-logical --invert-loopctrl --invert-assignments --remove-self-assignments "${@:3}"
}

# sample prints lines, FILE LINE each, with MUTANTS mutants or a few more of those in the list of gremlins' output $1.
# SEED gives the order in which they are chosen.
sample() {
	jq -r '.files[] | .file_name as $file | .mutations[] | "\($file) \(.line)"' "$1" | sort | uniq -c | awk '{ print $2, $3, $1 }' |
		shuf --random-source=<(yes "$SEED") | awk -v most="$MUTANTS" 'total < most { print $1, $2; total += $3 }'
}

# differ FOLDER makes a repository in which the lines on standard input, FILE LINE each, differ from those of FOLDER.
differ() {
	local file line
	mkdir "$work/base"
	cp "$1"/*.go "$work/base/"
	while read -r file line; do sed -i "${line}s|\$| // sampled|" "$work/base/$file"; done
	export GIT_DIR=$work/git
	git init -q
	git config diff.context 0
	git config diff.interHunkContext 0
	GIT_WORK_TREE=$work/base git add -A
	GIT_WORK_TREE=$work/base git -c user.name=mutate -c user.email=mutate -c commit.gpgsign=false commit -qm sample
	unset GIT_DIR
	rm -rf "$work/base"
}

measure() { # measure FOLDER
	local tests
	tests=$(tested "$1")
	[[ $tests != . ]] || { printf '%-24s has no tests\n' "$1"; return 0; }
	rm -rf "$work/git" "$work/list.json" "$work/result.json"
	LISTING=1 unleash "$1" "$work/list.json" --dry-run
	[[ -s $work/list.json ]] || return 0
	sample "$work/list.json" | differ "$1"
	GIT_DIR=$work/git GIT_WORK_TREE=$PWD/$1 unleash "$1" "$work/result.json" --diff HEAD ||
		{ printf '%-24s gremlins failed, or the tests without a mutant\n' "$1"; return 0; }
	jq -r --arg folder "$1" '.files[]? | .file_name as $file | .mutations[] | select(.status != "SKIPPED") |
		[$folder, "\($folder)/\($file):\(.line):\(.column)", .type, .status] | @tsv' "$work/result.json" |
		tee -a "$work/mutants" | report "$1"
}

# report NAME prints the row of the mutants on standard input, and those that survived.
report() {
	awk -F'\t' -v name="$1" '
		$4 == "NOT VIABLE" { next }
		{ mutants++ }
		$4 == "TIMED OUT" { late++ }
		$4 == "KILLED" || $4 == "TIMED OUT" { killed++; next }
		{ survivors = survivors sprintf("  %s %s\n", $2, $3) }
		END { printf "%-24s %7d %7d %6.0f %%%s\n", name, mutants, killed, mutants ? 100 * killed / mutants : 100,
				late ? sprintf(", %d by timeout", late) : ""
			if (name != "all") printf "%s", survivors }'
}

if (($# == 0)); then
	# The packages below tests, and llmtest, are parts of tests; those of cmd/nexus run the built program.
	mapfile -t packages < <(go list ./... |
		sed "s|^$module/||" | grep -Ev '^tests(/|$)|^cmd/nexus$|test$')
	set -- "${packages[@]}"
fi
wrap
: >"$work/mutants"
printf 'seed %s\n%-24s %7s %7s %8s\n' "$SEED" package mutants killed percent
for package; do package=${package#./}; measure "${package%/}"; done
report all <"$work/mutants"
