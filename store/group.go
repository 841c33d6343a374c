package store

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Group is an executor app and the addresses that serve it: one row of
// XXL-JOB's xxl_job_group.
type Group struct {
	// App is the app's name, unique. Required, at most 64 bytes.
	App string
	// Title is what people read. At most 64 bytes; empty means App.
	Title string
	// Manual is true when Addresses holds the app's addresses (XXL-JOB:
	// address_type 1), false when they come from the Registry.
	Manual bool
	// Addresses are base URLs, http or https, for a manual group only.
	Addresses []string
	// Updated is set by the store.
	Updated time.Time
}

// Validate reports every fault of the group at once, or nil.
func (g Group) Validate() error {
	f := Faults{Of: "group"}
	f.Key("App", g.App, 1, 64)
	f.Text("Title", g.Title, 0, 64)
	if g.Manual && len(g.Addresses) == 0 {
		f.Add("Addresses", g.Addresses, errors.New("a manual group needs at least one"))
	}
	if !g.Manual && len(g.Addresses) > 0 {
		f.Add("Addresses", g.Addresses, errors.New("only a manual group has its own"))
	}
	for i, a := range g.Addresses {
		f.Add("Addresses", a, checkAddress(a))
		if slices.Contains(g.Addresses[:i], a) {
			f.Add("Addresses", a, errors.New("listed twice"))
		}
	}
	return f.Err()
}

// checkAddress accepts the base URL of a remote executor.
func checkAddress(addr string) error {
	if strings.ContainsAny(addr, ", \t\r\n") {
		return errors.New("has a comma or a blank: want one address, and of a list one by one")
	}
	u, err := url.Parse(addr)
	switch {
	case err != nil && !strings.Contains(addr, "://"): // "10.0.0.1:9999", which is taken for a path with a colon
		return errors.New("want http:// or https://")
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("want http:// or https://")
	case u.Port() != "" && !isPort(u.Port()):
		return errors.New("want a port from 1 to 65535")
	case u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "":
		return errors.New("want scheme, host and path only")
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func (g Group) clone() Group {
	g.Addresses = slices.Clone(g.Addresses)
	return g
}
