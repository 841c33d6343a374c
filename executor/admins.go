package executor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// AdminCluster is the nodes of one XXL-JOB admin, or of one scheduler of this
// module, which share a database. The executor registers with one of them, the
// first that takes it, and delivers results to one of them. A node that hangs does
// not keep the registration from the next one.
type AdminCluster struct {
	// Name tells the cluster from others: in the address it is given, in the
	// directories of its logs and its spool, and in log lines. At most 64 of
	// a-z, 0-9 and "-"; the name of an endpoint and what looks like a date are
	// not possible. It is required, and another one for each, when there are
	// several clusters. Default: "admin".
	Name string

	// Addresses are the base addresses of the nodes, such as
	// http://10.0.0.1:8080/xxl-job-admin, in the order in which they are tried.
	// The one that worked last is tried first. At least one is required.
	Addresses []string

	// Token is the access token that these nodes are shown, and no others. Empty
	// for admins that have none.
	Token string
}

const maxClusterName = 64

// endpoints are the last elements of paths, which no cluster can be named like.
var endpoints = []string{"beat", "run", "trigger", "kill", "log", "idlebeat"}

// checkAdmins names everything that is wrong with Admins but for the addresses,
// which dialAll looks at.
func (c Config) checkAdmins() error {
	var faults []error
	seen := make(map[string]int)
	for i, a := range c.Admins {
		field := fmt.Sprintf("xxljob: executor: Config.Admins[%d]", i)
		if fault := nameFault(a.Name); fault != "" {
			faults = append(faults, fmt.Errorf("%s.Name is %q, %s", field, a.Name, fault))
		} else if first, ok := seen[a.Name]; ok {
			faults = append(faults, fmt.Errorf("%s.Name is %q like that of Admins[%d]", field, a.Name, first))
		} else {
			seen[a.Name] = i
		}
		if len(a.Addresses) == 0 {
			faults = append(faults, fmt.Errorf("%s.Addresses is empty, want one at least", field))
		}
		if a.Token == wire.DefaultToken && !c.AllowDefaultToken {
			faults = append(faults, fmt.Errorf("%s.Token is the default of XXL-JOB's samples, which everybody knows: see AllowDefaultToken", field))
		}
	}
	return errors.Join(faults...)
}

// nameFault says what is wrong with the name of a cluster, "" for nothing.
func nameFault(name string) string {
	if name == "" {
		return "want one, since there are several clusters"
	}
	strange := strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
	if strange || len(name) > maxClusterName {
		return fmt.Sprintf("want at most %d of a-z, 0-9 and -", maxClusterName)
	}
	if slices.Contains(endpoints, name) {
		return "which is the name of an endpoint"
	}
	if _, err := time.Parse(time.DateOnly, name); err == nil {
		return "which is the name of a day's directory of logs"
	}
	return ""
}

// tokensOf are the tokens that a cluster may show: those for all, or else its own.
func (c Config) tokensOf(a AdminCluster) []string {
	switch {
	case len(c.Tokens) > 0:
		return c.Tokens
	case a.Token != "":
		return []string{a.Token}
	}
	return nil
}
