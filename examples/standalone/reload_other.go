//go:build !unix

package main

import "os"

// reloadSignal returns a channel that stays silent: there is no SIGHUP here.
func reloadSignal() <-chan os.Signal { return nil }
