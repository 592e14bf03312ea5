package main

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"testing"
)

func TestUnchanged(t *testing.T) {
	const smaps = `00400000-01400000 r-xp 00000000 fe:00 247026                     /opt/my nexus
Rss:                   8 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01400000-02400000 r--p 01000000 fe:00 247026                     /opt/my nexus
Anonymous:             4 kB
02400000-02500000 rw-p 02000000 fe:00 247026                     /opt/my nexus
Anonymous:             0 kB
02500000-02600000 r--s 02000000 fe:00 247026                     /opt/my nexus
Anonymous:             0 kB
02600000-02700000 r--p 02100000 fe:00 247026                     /opt/my nexus
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 11                 /lib/other
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
broken-line r-xp 00000000 fe:00 247026 /opt/my nexus
Anonymous:             0 kB
`
	want := []mapping{
		{0x400000, 0x1400000, "r-xp", "/opt/my nexus"},
		{0x2600000, 0x2700000, "r--p", "/opt/my nexus"},
	}
	if got := unchanged(smaps, "/opt/my nexus"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestReleaseProgram releases the pages of the test's own program, which has gone on if it gets to the end.
func TestReleaseProgram(t *testing.T) {
	before := resident(t)
	releaseProgram()
	if after := resident(t); after >= before {
		t.Errorf("got %d kB of files resident, want less than the %d kB before", after, before)
	}
}

// resident returns how much of files is resident, in kB.
func resident(t *testing.T) (kb int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("there is no /proc")
	}
	_, rest, ok := bytes.Cut(status, []byte("RssFile:"))
	if !ok {
		t.Skip("the kernel does not tell what is resident of files")
	}
	if _, err := fmt.Sscan(string(rest), &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}
