//go:build !linux

package main

// releaseProgram does nothing on this platform.
func releaseProgram() {}
