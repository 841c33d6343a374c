package executor

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// validate names every field out of range at once, and no token. Defaults are filled
// in.
func (c Config) validate() error {
	return errors.Join(c.checkNumbers(), c.checkAddresses(), c.checkAdmins(), c.checkTokens(), c.checkMiddleware())
}

func (c Config) checkNumbers() error {
	var faults []error
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Places", int64(c.Places)},
		{"Queue", int64(c.Queue)},
		{"Backlog", int64(c.Backlog)},
		{"Outbox", int64(c.Outbox)},
		{"KeepFinishedMax", int64(c.KeepFinishedMax)},
		{"Log.MaxBytes", int64(c.Log.MaxBytes)},
		{"Log.TotalBytes", int64(c.Log.TotalBytes)},
		{"SpoolBytes", c.SpoolBytes},
	} {
		if n.value < 0 {
			faults = append(faults, fmt.Errorf("xxljob: executor: Config.%s is %d, want 0 (the default) or more", n.name, n.value))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"Grace", c.Grace},
		{"StopGrace", c.StopGrace},
		{"KeepFinished", c.KeepFinished},
		{"Beat", c.Beat},
		{"CallTimeout", c.CallTimeout},
	} {
		if d.value < 0 {
			faults = append(faults, fmt.Errorf("xxljob: executor: Config.%s is %v, want 0 (the default) or more", d.name, d.value))
		}
	}
	return errors.Join(faults...)
}

// checkAddresses looks at where this executor listens and is found.
func (c Config) checkAddresses() error {
	var faults []error
	if c.Addr != "" {
		if _, _, err := net.SplitHostPort(c.Addr); err != nil {
			faults = append(faults, fmt.Errorf("xxljob: executor: Config.Addr is %q, want host:port: %w", c.Addr, err))
		}
	}
	switch {
	case c.Address != "":
		for _, addr := range append(c.addressesBelow(c.Address), c.Address) {
			if _, err := wire.ParseAddress(addr); err != nil {
				return errors.Join(append(faults, fmt.Errorf("xxljob: executor: Config.Address: %w", err))...)
			}
		}
	case len(c.Admins) > 0 && c.Addr == "":
		faults = append(faults, errors.New("xxljob: executor: Config.Address is empty, want the address under which Admins reach this executor, or Addr for a server of its own"))
	}
	return errors.Join(faults...)
}

// checkTokens looks at what callers may show.
func (c Config) checkTokens() error {
	var faults []error
	fault := func(field string, err error) {
		faults = append(faults, fmt.Errorf("xxljob: executor: Config.%s: %w", field, err))
	}
	if len(c.Tokens) > 0 {
		if _, err := c.keyring(c.Tokens); err != nil {
			fault("Tokens", err)
		}
	}
	for i, a := range c.Admins {
		if a.Token == "" || a.Token == wire.DefaultToken { // checkAdmins has its say about that one
			continue
		}
		if _, err := c.keyring([]string{a.Token}); err != nil {
			fault(fmt.Sprintf("Admins[%d].Token", i), err)
		}
	}
	return errors.Join(faults...)
}

// usesDefaultToken reports whether XXL-JOB's well-known token is shown or admitted.
func (c Config) usesDefaultToken() bool {
	return slices.Contains(c.Tokens, wire.DefaultToken) ||
		slices.ContainsFunc(c.Admins, func(a AdminCluster) bool { return a.Token == wire.DefaultToken })
}
