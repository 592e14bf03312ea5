#compdef nexus
# Completion of nexus for zsh. In ~/.zshrc, after compinit:  source <(nexus completion zsh)
compdef _nexus nexus
_nexus() {
	local line
	local -a found
	for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -z $line ]] || found+=("${line/$'\t'/:}")
	done
	if (($#found)); then
		_describe nexus found
	else
		_files
	fi
}
if [[ $funcstack[1] == _nexus ]]; then
	_nexus "$@"
fi
