package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/xxljob/xxljob"
	"github.com/xxljob/xxljob/console"
)

// What -console may say: who gets in.
const (
	consoleAccounts = "accounts" // users of its own, the first of them by a code that is printed
	consoleLoopback = "loopback" // whoever is on this machine
	consoleOff      = "off"
)

// consolePort is where the console is without -console-listen, on this machine alone, if that is free.
const consolePort = "8080"

// hasConsole reports whether there is one.
func (o options) hasConsole() bool { return o.console != "" && o.console != consoleOff }

// checkConsole says what is wrong with -console.
func (o options) checkConsole() error {
	if modes := []string{consoleAccounts, consoleLoopback, consoleOff, ""}; !slices.Contains(modes, o.console) {
		return fmt.Errorf("-console %q: want one of %q", o.console, modes[:3])
	}
	if o.consoleListen != "" && !o.hasConsole() {
		return errors.New("-console-listen: there is no console with -console off")
	}
	return nil
}

// networks are those of a list of addresses and networks.
func networks(list string) (out []netip.Prefix, err error) {
	for _, text := range strings.Split(list, ",") {
		addr, err := netip.ParseAddr(text)
		addr = addr.Unmap()
		p := netip.PrefixFrom(addr, addr.BitLen())
		if err != nil {
			p, err = netip.ParsePrefix(text)
		}
		if err != nil || p.Bits() == 0 || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q: want an address, or a network such as 10.0.0.0/8, and not all there are", text)
		}
		out = append(out, p)
	}
	return out, nil
}

// bindConsole takes an address for the console. It is never that of the executors: who may reach one
// is not asked whether to reach the other.
func (o options) bindConsole(ctx context.Context) (listener, error) {
	if !o.hasConsole() {
		return listener{}, nil
	}
	if o.consoleListen != "" {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.consoleListen)
		if err != nil {
			return listener{}, fmt.Errorf("-console-listen %s: %w", o.consoleListen, err)
		}
		return listener{l}, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "localhost:"+consolePort)
	if err != nil {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", "localhost:0")
	}
	if err != nil {
		return listener{}, fmt.Errorf("-console: %w; -console off does without", err)
	}
	return listener{l}, nil
}

// consoleHandler is the console, nil where there is none, and what follows the address of its
// page: with no user yet, the page that makes the first, with the code for that where no
// server sees it.
func (o options) consoleHandler(ctx context.Context, st xxljob.Store, s xxljob.Scheduler) (h http.Handler, page string, err error) {
	cfg := console.Config{Store: st, Scheduler: s, Location: o.zone, Auth: console.Loopback(console.Editor), TrustedProxies: o.proxies}
	switch {
	case !o.hasConsole():
		return nil, "", nil
	case o.console == consoleAccounts:
		accounts, keeps := st.(xxljob.AccountStore)
		if !keeps {
			return nil, "", errors.New("-console: the store keeps no users")
		}
		cfg.Auth, cfg.OwnSetup = console.Accounts(), true
		code, err := console.SetupCode(ctx, accounts)
		if err != nil {
			return nil, "", err
		}
		if code != "" {
			page = "setup#" + code
		}
	}
	h, err = console.New(cfg)
	if err != nil {
		return nil, "", err
	}
	return http.StripPrefix("/console", h), page, nil
}
