package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// releaseProgram removes the pages of the program's file from resident memory. The kernel maps 64 KiB around each
// touched page, and the init functions of the linked packages touch nearly all of the file. Pages that are needed
// again are mapped again from the page cache.
func releaseProgram() {
	file, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range unchanged(string(maps), file) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED) // a hint
	}
}

// mapping is a part of the address space.
type mapping struct {
	start, end uintptr
	perms      string // like r-xp
	file       string
}

// unchanged returns the mappings whose content equals the file, from the text of proc_pid_smaps(5). It leaves out
// writable mappings and those that relocation wrote before they were protected.
func unchanged(smaps, file string) []mapping {
	var found []mapping
	var m mapping // of the current lines
	for line := range strings.Lines(smaps) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 5 && !strings.HasSuffix(f[0], ":"):
			m = readMapping(f)
		case len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0":
			if m.file == file && m.perms[1] != 'w' && m.perms[3] == 'p' {
				found = append(found, m)
			}
		}
	}
	return found
}

// readMapping reads the fields of the first line of a mapping: addresses, permissions, offset, device, inode, path.
func readMapping(fields []string) mapping {
	start, end, _ := strings.Cut(fields[0], "-")
	first, err1 := strconv.ParseUint(start, 16, strconv.IntSize)
	last, err2 := strconv.ParseUint(end, 16, strconv.IntSize)
	if err1 != nil || err2 != nil || last < first || len(fields[1]) != 4 || len(fields) < 6 {
		return mapping{}
	}
	return mapping{uintptr(first), uintptr(last), fields[1], strings.Join(fields[5:], " ")}
}
