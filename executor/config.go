package executor

// What an executor is told: its configuration, the defaults and the checks, the admins and the
// addresses.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// Config says how an executor behaves. The zero value means the defaults named
// at each field. It is read once, by New.
type Config struct {
	// App is the name the executor registers under. Default: the base name of
	// the program.
	App string

	// Logger receives what is not about one run's own work: panics, abandoned
	// handlers, results that cannot be delivered. Default: slog.Default().
	Logger *slog.Logger

	// Location is the zone of the lines of run logs and of their day directories, and of the
	// times of a Task whose job has no zone. Default: UTC, or the scheduler's Config.Location
	// for an executor that is its own.
	Location *time.Location

	// Middleware is put around every handler, the first outermost, when it is registered.
	// What it makes is called once for each run: after the duplicate guard and the block
	// strategy, with the run's deadline in its context, and inside the recovery of panics,
	// so that one which wants to see a panic recovers it and panics again. It sees the
	// errors of OnInit too. What it returns is the run's result; a run whose handler it
	// does not call succeeds if it returns nil. It is called concurrently for different
	// runs.
	Middleware []func(Handler) Handler

	// Places is how many handlers run at once. Further runs wait, first come
	// first served over the jobs, up to Backlog. An abandoned handler gives its
	// place up; when as many as Places have been abandoned and have not
	// returned, the next ones keep theirs, so that there are never more than
	// twice Places handlers. Default: 2000.
	Places int

	// Queue is how many runs of one job wait behind the running one. Default: 256.
	Queue int

	// Backlog is how many runs of all jobs together wait. Default: 10,000.
	Backlog int

	// Outbox is how many accepted runs of one admin may lack a delivered result, running ones
	// included; at the bound, new runs are refused until the admin takes results
	// again. Default: 100,000.
	Outbox int

	// StopGrace is how long Serve lets runs go on when its context has ended.
	// Default: 30 s.
	StopGrace time.Duration

	// Grace is how long a cancelled handler has to return before it is abandoned
	// and its job goes on without it. Default: 10 s.
	Grace time.Duration

	// KeepFinished is how long a finished run is remembered after its end, so that
	// the same request arriving again is answered and not run again; one whose result
	// is not delivered is remembered for longer. It is also how long a start is refused
	// that Executor.IdleBeat has said is not known, but that is 10 min at least. Where the
	// scheduler says that it sends a run again, and the id may be forgotten, the run
	// is refused. Default: 10 min.
	KeepFinished time.Duration

	// KeepFinishedMax bounds how many finished runs are remembered at most; the
	// last half as many always are, within KeepFinished. Default: 100,000.
	KeepFinishedMax int

	// Log says where the lines of Task.Log go.
	Log LogConfig

	// Addr is where a server of the executor's own listens from Start on, such as
	// ":9999"; with port 0 the system chooses one. Empty for none: see Handler.
	Addr string

	// Address is the base address under which admins reach this executor, such as
	// http://10.0.0.7:9999/, with the prefix of its handler. It is registered as
	// it is given; where there are several Admins, each registers the path
	// <Admins.Name>/ below it. It is required with Admins when Addr is empty.
	// Default: http, the host of Addr or, when Addr has none, the IP address from
	// which admins are reached, and the port that Addr has got.
	Address string

	// Admins are the clusters that the executor registers with at Start, and works
	// for: with each of them, and with one node of each. Their run and job ids,
	// results and logs are kept apart, and so are the bounds Outbox and
	// KeepFinishedMax. Default: none, the executor works for the admin it is bound
	// to only.
	Admins []AdminCluster

	// Tokens are the access tokens that callers of HTTPHandler and Addr may show, at
	// most two: the old one and the new one, while admins are changed over. New logs a warning
	// for those below 16 bytes, which can be guessed, and for such an AdminCluster.Token.
	// Default: those of a cluster show its own AdminCluster.Token, and open
	// nothing of another cluster's.
	Tokens []string

	// Insecure lets everybody in where there is no token: every process that
	// reaches the executor can run handlers, kill runs and read logs. It is for
	// closed networks and tests. Default: an executor without a token is an error
	// of HTTPHandler and Start.
	Insecure bool

	// AllowDefaultToken admits "default_token", the token of XXL-JOB's samples, for
	// the time of a migration. It is warned of at each Start. Default: it is an
	// error of New.
	AllowDefaultToken bool

	// Beat is how often the executor registers with each of Admins. They take it
	// for gone after three times 30 s. Default: 30 s.
	Beat time.Duration

	// SpoolDir is the root directory of files in which results for Admins are kept
	// until an admin has them, <SpoolDir>/<Admins.Name>/..., made when absent; files
	// are 0600 and directories 0700. A result is on the disk before it is first
	// sent, and what a process leaves is delivered by the next one. Several
	// processes may share it. The newest hundred that an admin refuses for what they say are
	// kept in <SpoolDir>/<Admins.Name>/refused. Empty keeps results in memory, and no file is
	// written.
	SpoolDir string

	// SpoolBytes bounds the files of each of Admins, in blocks of 4 KiB; at the
	// bound its new runs are refused. Results of runs accepted before are written
	// nevertheless. Default: 256 MiB.
	SpoolBytes int64

	// Transport keeps the connections to Admins. Default: one for this executor
	// with the defaults of wire.TransportConfig.
	Transport *wire.Transport

	// CallTimeout bounds a call to one node of Admins, connecting included. A
	// registration that is not answered is sent again every 3.5 s beside those that are
	// open. Default: 6 s.
	CallTimeout time.Duration
}

// LogConfig says where the lines of runs are kept, and how many.
type LogConfig struct {
	// Dir is the root directory of log files
	// <Dir>/yyyy-MM-dd/<run id>-<second of its date>.log, made when absent; files are
	// 0600 and directories 0700. The day is that of the run's date, which the admin sends,
	// but at most two days from when the run came. Empty keeps the lines in memory.
	Dir string

	// RetentionDays is how many days a day's directory is kept after its date, or one
	// that is more than two days ahead after the last file was put into it.
	// Old ones are removed by the first line of a day. Negative keeps them for
	// ever. Default: 30.
	RetentionDays int

	// MaxBytes bounds the log of one run; what follows is dropped behind a line
	// that says so. Default: 256 KiB in memory, 16 MiB in files.
	MaxBytes int

	// TotalBytes bounds all logs in memory together; the oldest are dropped.
	// It does not concern files. Default: 64 MiB.
	TotalBytes int

	// Level is the least level kept. Default: slog.LevelInfo.
	Level slog.Leveler
}

// withDefaults returns c with every zero field filled in.
func (c Config) withDefaults() Config {
	if c.App == "" {
		c.App = filepath.Base(os.Args[0])
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.Log.Level == nil {
		c.Log.Level = slog.LevelInfo
	}
	orElse(&c.Places, 2000)
	orElse(&c.Queue, 256)
	orElse(&c.Backlog, 10_000)
	orElse(&c.Outbox, 100_000)
	orElse(&c.Grace, 10*time.Second)
	orElse(&c.StopGrace, 30*time.Second)
	orElse(&c.KeepFinished, 10*time.Minute)
	orElse(&c.KeepFinishedMax, 100_000)
	orElse(&c.Log.RetentionDays, 30)
	if c.Log.Dir == "" {
		orElse(&c.Log.MaxBytes, 256<<10)
	} else {
		orElse(&c.Log.MaxBytes, 16<<20)
	}
	orElse(&c.Log.TotalBytes, 64<<20)
	orElse(&c.Beat, 30*time.Second)
	orElse(&c.SpoolBytes, 256<<20)
	orElse(&c.CallTimeout, 6*time.Second)
	c.Admins = slices.Clone(c.Admins)
	c.Middleware = slices.Clone(c.Middleware)
	if len(c.Admins) == 1 && c.Admins[0].Name == "" {
		c.Admins[0].Name = "admin"
	}
	if len(c.Admins) > 0 && c.Transport == nil {
		c.Transport = wire.NewTransport(wire.TransportConfig{})
	}
	return c
}

func orElse[T int | int64 | time.Duration](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

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

// shortestToken is below what length, in bytes, a token can be guessed, as of a scheduler's.
const shortestToken = 16

// shortTokens are the fields that have a token which can be guessed. That of XXL-JOB's samples is
// allowed, and warned of, by itself.
func (c Config) shortTokens() (fields []string) {
	short := func(token string) bool {
		return token != "" && len(token) < shortestToken && token != wire.DefaultToken
	}
	if slices.ContainsFunc(c.Tokens, short) {
		fields = append(fields, "Tokens")
	}
	for i, a := range c.Admins {
		if short(a.Token) {
			fields = append(fields, fmt.Sprintf("Admins[%d].Token", i))
		}
	}
	return fields
}

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

// outboundWait bounds looking up the names of admins.
const outboundWait = 3 * time.Second

// addresses returns what is registered with each of Config.Admins. s is the
// server of Config.Addr, nil without one.
func (e *Executor) addresses(ctx context.Context, s *server) ([]string, error) {
	base := e.cfg.Address
	if base == "" {
		found, err := e.boundAddress(ctx, s.listen.Addr())
		if err != nil {
			return nil, err
		}
		base = found
	}
	return e.cfg.addressesBelow(base), nil
}

// addressesBelow returns the address of each cluster: base as it is for a single
// one, and otherwise the cluster's name below it.
func (c Config) addressesBelow(base string) (list []string) {
	for _, a := range c.Admins {
		if len(c.Admins) > 1 {
			list = append(list, strings.TrimSuffix(base, "/")+"/"+a.Name+"/")
		} else {
			list = append(list, base)
		}
	}
	return list
}

// boundAddress is the default of Config.Address: the host of Config.Addr or, when
// that is every one of this machine, the one from which admins are reached.
func (e *Executor) boundAddress(ctx context.Context, bound net.Addr) (string, error) {
	host, _, err := net.SplitHostPort(e.cfg.Addr)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		if host = e.outbound(ctx); host == "" {
			return "", errors.New("xxljob: executor: this machine's address towards the admins is not known: set Config.Address")
		}
	}
	return "http://" + net.JoinHostPort(host, port) + "/", nil
}

// outbound is the IP address from which this machine would reach the first admin
// that it has a way to, "" for none. Nothing is sent.
func (e *Executor) outbound(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, outboundWait)
	defer cancel()
	var d net.Dialer
	for _, o := range e.origins[1:] {
		for _, n := range o.cluster.nodes {
			u, err := url.Parse(n.addr)
			if err != nil {
				continue
			}
			c, err := d.DialContext(ctx, "udp", net.JoinHostPort(u.Hostname(), "9"))
			if err != nil {
				continue
			}
			host, _, err := net.SplitHostPort(c.LocalAddr().String())
			if c.Close() == nil && err == nil {
				return host
			}
		}
	}
	return ""
}
