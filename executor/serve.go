package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/xxljob/xxljob/wire"
)

// HTTPHandler returns the executor's side of the protocol over HTTP, for the host's
// own mux or server: /beat, /idleBeat, /run, /trigger, /kill and /log below any
// prefix, stripped or not. Everything is answered with status 200 and a code, and
// nothing is ever redirected; see wire.NewExecutorHandler for what the host's
// server has to bound.
//
// A request is of the cluster that its path names, as in /jobs/<name>/run, and
// needs a token that this cluster may show. Where there are several clusters and
// the path names none, it is of the only one that has the token it shows, or else
// of the first. Without Config.Admins requests are of the admin that Bind has
// set.
//
// It is valid before Start, until which the admins of Config.Admins are refused,
// and after Stop. The error says that there is no token, unless
// Config.Insecure is set.
func (e *Executor) HTTPHandler() (http.Handler, error) {
	serving := e.origins[1:]
	if len(serving) == 0 {
		serving = e.origins
	}
	var d doors
	var errs []error
	for _, o := range serving {
		door, err := e.door(o)
		if err != nil {
			errs = append(errs, err)
		}
		d = append(d, door)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(d) == 1 {
		return d[0].handler, nil
	}
	return d, nil
}

// door is where the requests of one origin come in.
type door struct {
	name    string
	token   string // its own, "" for none
	handler http.Handler
}

func (e *Executor) door(o *origin) (door, error) {
	auth, err := e.authorize(o)
	if err != nil {
		return door{}, err
	}
	h, err := wire.NewExecutorHandler(remote{e, o}, wire.HandlerConfig{Authorize: auth, Logger: e.cfg.Logger})
	return door{name: o.name, token: e.cfg.ownToken(o.name), handler: h}, err
}

// authorize decides about the requests of one origin.
func (e *Executor) authorize(o *origin) (wire.Authorize, error) {
	app, tokens := e.cfg.App, e.cfg.Tokens
	if o.remote() {
		tokens = o.tokens
	}
	if len(tokens) > 0 {
		keys, err := e.cfg.keyring(tokens)
		if err != nil {
			return nil, fmt.Errorf("xxljob: executor: %w", err)
		}
		return keys.Authorize, nil
	}
	if !e.cfg.Insecure {
		return nil, fmt.Errorf("xxljob: executor: admin %q has no token: set Config.Tokens or its Token, or say Insecure", o.name)
	}
	return func(context.Context, string, string) (string, bool) { return app, true }, nil // and who names another app is refused
}

// keyring holds tokens for this executor's app.
func (c Config) keyring(tokens []string) (*wire.Keyring, error) {
	return wire.NewKeyring(wire.Tokens{Apps: map[string][]string{c.App: tokens}, AllowDefault: c.AllowDefaultToken})
}

// ownToken is the token of one cluster, "" for none.
func (c Config) ownToken(name string) string {
	for _, a := range c.Admins {
		if a.Name == name {
			return a.Token
		}
	}
	return ""
}

// doors serves several clusters.
type doors []door

// ServeHTTP lets a request in by the door of its cluster.
func (d doors) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.of(r).handler.ServeHTTP(w, r) }

// of finds the door of a request; whether it opens is decided behind it.
func (d doors) of(r *http.Request) door {
	name := beforeLast(r.URL.Path)
	for _, door := range d {
		if door.name == name {
			return door
		}
	}
	found := d[0]
	count := 0
	token := r.Header.Get(wire.HeaderToken)
	for _, door := range d {
		if wire.SameToken(door.token, token) {
			count++
			found = door
		}
	}
	if count != 1 {
		return d[0]
	}
	return found
}

// beforeLast returns the last element but one of a path.
func beforeLast(path string) string {
	path = strings.TrimSuffix(path, "/")
	path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	return path[strings.LastIndexByte(path, '/')+1:]
}
