//go:build !unix || aix || solaris

package atomicfile

import (
	"context"
	"os"
)

// TryLock does nothing here, like Lock.
func TryLock(*os.File) error { return nil }

// Lock does nothing here: these systems have no flock. The documentation of the token store says what to do.
func Lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }

// LockFolder does nothing here, like Lock.
func LockFolder(context.Context, string) (unlock func(), err error) { return func() {}, nil }

func keepOwner(*os.File, os.FileInfo) {}

// Writable returns an error if there is no such folder. Whether files can be made in it, these systems do not tell.
func Writable(folder string) error {
	_, err := os.Stat(folder)
	return err
}
