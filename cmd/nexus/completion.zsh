#compdef nexus
# Completion of nexus for zsh. In ~/.zshrc, after compinit:  source <(nexus completion zsh)
compdef _nexus nexus
_nexus() {
	local line
	local -a found
	for line in "${(@f)$(command nexus complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -z $line ]] || found+=("${line/$'\t'/:}")
	done
	if (($#found)); then
		_describe nexus found
	else
		compset -P '--*='
		_files
	fi
}
if [[ $funcstack[1] == _nexus ]]; then
	_nexus "$@"
fi
