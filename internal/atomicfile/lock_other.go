//go:build !unix || aix || solaris

package atomicfile

import "context"

// Lock does nothing here: these systems have no such locks.
func Lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }
