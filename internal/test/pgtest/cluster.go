package pgtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Options say how a cluster differs from the usual one, which is as safe as a
// freshly installed Postgres: fsync and synchronous_commit are on.
type Options struct {
	// Bin is the directory of the programs; Find names it when it is empty.
	Bin string
	// Settings are lines of postgresql.conf.
	Settings map[string]string
	// NoFsync makes a cluster that is faster, and may be lost with the machine: where TMPDIR
	// names no other place, its files lie in memory if there is much of that.
	NoFsync bool
	// Env is added to the environment of the server.
	Env []string
	// Name is the name of a standby in the primary's synchronous_standby_names;
	// empty stands for "standby".
	Name string
}

// Cluster is a throw-away Postgres on this machine. It keeps its port and its
// data when it is stopped and started again, until it is closed or the process
// ends, however that happens. Its methods may be called concurrently.
type Cluster struct {
	home *home
	bin  string
	port int
}

// New makes a cluster and starts it. The caller has to close it.
func New(o Options) (*Cluster, error) {
	return build(o, (*Cluster).initdb)
}

// build makes a cluster of the data that fill makes, and starts it.
func build(o Options, fill func(*Cluster) error) (*Cluster, error) {
	if o.Bin == "" {
		var err error
		if o.Bin, err = Find(); err != nil {
			return nil, err
		}
	}
	h, err := newHome(syscall.SIGQUIT, o.NoFsync)
	if err != nil {
		return nil, err
	}
	h.env = o.Env
	c := &Cluster{home: h, bin: o.Bin}
	if err := c.furnish(o, fill); err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: start a cluster: %w", err), c.Close())
	}
	return c, nil
}

// furnish does what build does inside of the directory.
func (c *Cluster) furnish(o Options, fill func(*Cluster) error) error {
	if err := os.Mkdir(c.socket(), 0o700); err != nil {
		return err
	}
	if err := c.home.account.own(c.socket()); err != nil {
		return err
	}
	if err := fill(c); err != nil {
		return err
	}
	if err := c.write(usual(o)); err != nil {
		return err
	}
	var err error
	for range 5 { // another process may be faster in taking the port
		if c.port, err = freePort(); err != nil {
			return err
		}
		if err = c.write(map[string]string{"port": strconv.Itoa(c.port), "unix_socket_directories": c.socket()}); err != nil {
			return err
		}
		if err = c.run(); err == nil || !strings.Contains(err.Error(), "could not bind") {
			return err
		}
	}
	return err
}

// initdb makes the data of a new cluster: a copy of what the program made for the first one of
// this process, which takes a tenth of the time.
func (c *Cluster) initdb() error {
	made, _ := pristine.LoadOrStore(c.bin, sync.OnceValues(func() (*home, error) { return initdb(c.bin) }))
	h, err := made.(func() (*home, error))()
	if err != nil {
		return err
	}
	return c.home.do("cp", "-R", h.path("data"), c.data())
}

// pristine is what the program initdb has made in this process, by the directory of the programs:
// a func() (*home, error). It goes when the process does.
var pristine sync.Map

// initdb runs the program. The order of C.UTF-8 is that of bytes; where the system lacks it, C is
// the same but for the case of letters.
func initdb(bin string) (*home, error) {
	h, err := newHome(syscall.SIGKILL, true) // nothing runs in it
	if err != nil {
		return nil, err
	}
	for _, locale := range []string{"C.UTF-8", "C"} {
		err = h.do(filepath.Join(bin, "initdb"), "-D", h.path("data"), "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale="+locale, "--no-sync", "--no-instructions")
		if err == nil {
			return h, nil
		}
		if !strings.Contains(err.Error(), "invalid locale") {
			break
		}
	}
	return nil, errors.Join(err, h.close())
}

// usual returns the settings of a cluster but for its addresses.
func usual(o Options) map[string]string {
	s := map[string]string{
		"listen_addresses": "127.0.0.1",
		"max_connections":  "400",
		"shared_buffers":   "128MB",
		"timezone":         "UTC",
		"log_timezone":     "UTC",
		"log_line_prefix":  "%m [%p] %a ",
		"log_lock_waits":   "on",
		// Schemas with many partitions are dropped in one transaction each.
		"max_locks_per_transaction": "256",
	}
	if o.NoFsync {
		s["fsync"] = "off"
	}
	maps.Copy(s, o.Settings)
	return s
}

// write appends settings to postgresql.conf, where the last one holds.
func (c *Cluster) write(settings map[string]string) error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	f, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}

// freePort finds a port outside of the ranges from which systems take those of
// outgoing connections: there, a client that calls a stopped server over and over
// ends up connected to itself, and holds the port.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := 15000 + rand.IntN(15000)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

// superuser is the role that initdb makes.
const superuser = "postgres"

// DSN returns the address of a database for the superuser, over TCP. The
// database "postgres" is always there.
func (c *Cluster) DSN(dbname string) string { return c.address(superuser, dbname) }

func (c *Cluster) address(role, dbname string) string {
	u := url.URL{Scheme: "postgres", User: url.User(role), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)), Path: "/" + dbname, RawQuery: "sslmode=disable"}
	return u.String()
}

// SocketDSN is DSN over the cluster's Unix socket.
func (c *Cluster) SocketDSN(dbname string) string {
	q := url.Values{"host": {c.socket()}, "port": {strconv.Itoa(c.port)}, "user": {superuser}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", Path: "/" + dbname, RawQuery: q.Encode()}
	return u.String()
}

// Dir returns the directory of the cluster: the files of the server are in data
// below it.
func (c *Cluster) Dir() string { return c.home.dir }

// PID returns the process id of the server, 0 when it does not run.
func (c *Cluster) PID() int { return c.home.pid() }

// Log returns what the server has logged.
func (c *Cluster) Log() string { return c.home.log() }

func (c *Cluster) data() string   { return c.home.path("data") }
func (c *Cluster) socket() string { return c.home.path("socket") }

// Close stops the server at once and removes the directory.
func (c *Cluster) Close() error { return c.home.close() }
