package xxljob

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xxljob/xxljob/wire"
)

// authorize decides by the tokens of the config.
func (c *Config) authorize() (wire.Authorize, error) {
	switch {
	case len(c.HTTP.Tokens) > 0:
		keys, err := wire.NewKeyring(c.tokens())
		if err != nil {
			return nil, err
		}
		return c.authorizer(keys), nil
	case c.HTTP.Insecure:
		return wire.Insecure, nil
	}
	return nil, errors.New("xxljob: Handler: Config.HTTP.Tokens is empty: give a token, or set Config.HTTP.Insecure")
}

// authorizer accepts the tokens of a keyring. One that all apps share is none of an app
// that has its own.
func (c *Config) authorizer(keys *wire.Keyring) wire.Authorize {
	return func(ctx context.Context, app, token string) (scope string, ok bool) {
		scope, ok = keys.Authorize(ctx, app, token)
		if ok && scope == "" && app != "" && len(c.HTTP.Tokens[app]) > 0 {
			return "", false
		}
		return scope, ok
	}
}

// tokens are the tokens in the form that wire has for them.
func (c *Config) tokens() wire.Tokens {
	t := wire.Tokens{Shared: c.HTTP.Tokens[""], Apps: map[string][]string{}, AllowDefault: c.HTTP.AllowDefaultToken}
	for app, tokens := range c.HTTP.Tokens {
		if app != "" {
			t.Apps[app] = tokens
		}
	}
	return t
}

// validateTokens never puts a token into an error.
func (c *Config) validateTokens(f *faults) {
	if len(c.HTTP.Tokens) == 0 {
		return
	}
	if _, err := wire.NewKeyring(c.tokens()); err != nil {
		f.errs = append(f.errs, fmt.Errorf("xxljob: config: HTTP.Tokens: %w", err))
	}
}

// validateJobsAPI looks at the apps whose callers manage jobs.
func (c *Config) validateJobsAPI(f *faults) {
	apps := func(field string, list []string) {
		for i, app := range list {
			f.text(field, app, 1, 64)
			if slices.Contains(list[:i], app) {
				f.add(field, app, errors.New("listed twice"))
			}
		}
	}
	apps("HTTP.JobsAPI", c.HTTP.JobsAPI)
	apps("HTTP.JobsAPIScripts", c.HTTP.JobsAPIScripts)
	for _, app := range c.HTTP.JobsAPI {
		if len(c.HTTP.Tokens) > 0 && len(c.HTTP.Tokens[app]) == 0 && len(c.HTTP.Tokens[""]) == 0 {
			f.add("HTTP.JobsAPI", app, errors.New("no token of HTTP.Tokens speaks for it"))
		}
	}
	for _, app := range c.HTTP.JobsAPIScripts {
		if !slices.Contains(c.HTTP.JobsAPI, app) {
			f.add("HTTP.JobsAPIScripts", app, errors.New("want one of HTTP.JobsAPI"))
		}
	}
}

// tokensOf are the tokens that executors of an app may have, the preferred one first.
func (c *Config) tokensOf(app string) []string {
	switch {
	case len(c.HTTP.Tokens[app]) > 0:
		return c.HTTP.Tokens[app]
	case len(c.HTTP.Tokens[""]) > 0:
		return c.HTTP.Tokens[""]
	}
	return []string{""} // Insecure
}
