# Completion of nexus for bash. In ~/.bashrc:  source <(nexus completion bash)
_nexus() {
	local i word words=()
	COMPREPLY=()
	for ((i = 1; i <= COMP_CWORD; i++)); do # bash cuts words at = and :, too
		word=${COMP_WORDS[i]}
		if ((i > 1)) && [[ $word && (-z ${word//[=:]/} || -z ${COMP_WORDS[i - 1]//[=:]/}) ]]; then
			words[${#words[@]} - 1]+=$word
		else
			words+=("$word")
		fi
	done
	while IFS=$'\t' read -r word _; do
		[[ $COMP_WORDBREAKS != *=* ]] || word=${word#*=}
		COMPREPLY+=("$word")
	done < <(command nexus complete -- "${words[@]}" 2>/dev/null)
}
complete -o bashdefault -o default -F _nexus nexus
