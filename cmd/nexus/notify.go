package main

import (
	"log/slog"
	"net"
	"os"
)

// notify tells the state of this process to the service manager that started it, if that wants to know (sd_notify).
func notify(log *slog.Logger, state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	c, err := net.Dial("unixgram", name)
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		log.Warn("The service manager cannot be told " + state + ": " + err.Error())
	}
}
