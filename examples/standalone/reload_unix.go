//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// reloadSignal returns the channel of SIGHUP.
func reloadSignal() <-chan os.Signal {
	c := make(chan os.Signal, 1) // one waiting reload stands for all
	signal.Notify(c, syscall.SIGHUP)
	return c
}
