package webhook

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/xxljob/xxljob/alarm"
)

const maxURL = 4 << 10

// checkURL parses the URL of a configuration. Its errors do not repeat it.
func checkURL(cfg Config) (*url.URL, error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case cfg.URL == "":
		return nil, errors.New("Config.URL is empty")
	case err != nil || len(cfg.URL) > maxURL || alarm.Line(cfg.URL, maxURL) != cfg.URL:
		return nil, errors.New("Config.URL is no URL of at most 4 KiB")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("Config.URL is neither of https nor of http")
	case u.Scheme == "http" && !cfg.AllowHTTP:
		return nil, errors.New("Config.URL is of http, which takes Config.AllowHTTP")
	case u.Hostname() == "":
		return nil, errors.New("Config.URL has no host")
	case u.User != nil:
		return nil, errors.New("Config.URL has user information, which is not sent: use Config.Secret")
	case u.Fragment != "":
		return nil, errors.New("Config.URL has a fragment")
	}
	return u, nil
}

// concealed lists what of a URL authorizes, and the secret, as a service might repeat them in
// an answer. The longest come first, as others are part of them.
func concealed(u *url.URL, secret string) []string {
	list := []string{secret, url.QueryEscape(secret), u.RawQuery}
	if len(u.Path) > 1 {
		list = append(list, u.Path, u.EscapedPath())
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if len(segment) >= 8 {
			list = append(list, segment, url.PathEscape(segment))
		}
	}
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= 4 {
				list = append(list, v, url.QueryEscape(v))
			}
		}
	}
	for _, s := range slices.Clone(list) {
		list = append(list, alarm.Line(s, maxAnswer)) // what conceal has made of it by then
	}
	list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
	slices.SortFunc(list, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return slices.Compact(list)
}

// conceal makes a text fit for an error: a short line without what is secret.
func (h *Hook) conceal(s string) string {
	s = alarm.Line(s, maxAnswer)
	for _, secret := range h.concealed {
		s = strings.ReplaceAll(s, secret, "[hidden]")
	}
	return alarm.Line(s, 300)
}
