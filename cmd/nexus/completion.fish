# Completion of nexus for fish. In ~/.config/fish/config.fish:  nexus completion fish | source
function __nexus_complete
	set -l words (commandline -opc)
	command nexus complete -- $words[2..-1] "$(commandline -ct)" 2>/dev/null
end
complete -c nexus -n 'test -n "$(__nexus_complete)"' -f -a '(__nexus_complete)'
