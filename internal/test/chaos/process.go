//go:build unix

package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
	"github.com/xxljob/xxljob/internal/test/chaos/proxy"
	"github.com/xxljob/xxljob/internal/test/chaos/sink"
)

// member is a node of the cluster: a name, with one process after the other.
type member struct {
	name  string
	arena *arena
	proxy *proxy.Proxy // nil where the database is reached directly
	dsn   string
	args  []string // of an executor's processes; nil of a node's
	app   string   // of a node's: another than that of most; empty for it

	mu    sync.Mutex
	cmd   *exec.Cmd      // guarded by mu: nil when no process runs
	stdin io.WriteCloser // guarded by mu
	ended chan struct{}  // guarded by mu: closed when the process has been reaped
	blind bool           // guarded by mu: its processes have no data of the zones of ours
	busy  bool           // guarded by mu: a fault has chosen it
	freed time.Time      // guarded by mu: when the last fault that had it was over
	mute  bool           // guarded by mu: it is paused or cut off
}

// newMember makes a member with a proxy of its own before the database.
func (a *arena) newMember(name string) (*member, error) {
	m := &member{name: name, arena: a, dsn: a.dsn}
	if a.dsn == "" || a.direct {
		return m, nil
	}
	u, err := url.Parse(a.dsn)
	if err != nil {
		return nil, err
	}
	if m.proxy, err = proxy.Listen(u.Host); err != nil {
		return nil, err
	}
	u.Host = m.proxy.Addr()
	m.dsn = u.String()
	return m, nil
}

// start begins a process and returns at once. The environment is added to ours.
func (m *member) start(env ...string) error {
	a := m.arena
	args := []string{"-name", m.name, "-dir", a.dir}
	if len(m.args) > 0 {
		return m.launch(append(args, m.args...), env)
	}
	store := "postgres"
	if a.dsn == "" {
		store = "memory"
	}
	hook := a.hook
	if m.app != "" {
		hook = a.own
		args = append(args, "-app", m.app, "-router", router)
	}
	args = append(args, "-store", store, "-dsn", m.dsn, "-schema", schema, "-shards", fmt.Sprint(shards), "-lease", cmp.Or(a.lease, leaseLock), "-pool", fmt.Sprint(a.pool),
		fmt.Sprintf("-reserve=%t", !a.bare), "-poison", fmt.Sprint(a.poison), "-dead", a.dead.String(), "-hook", hook.URL(), "-mail", fmt.Sprint(a.mails.Port()), "-subject", sink.Subject)
	return m.launch(args, env)
}

// launch begins a process of the node program.
func (m *member) launch(args, env []string) error {
	a := m.arena
	log, err := os.OpenFile(filepath.Join(a.dir, m.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(a.program, args...)
	cmd.Env = append(os.Environ(), "XXLJOB_FAILPOINT_FILE="+m.pointsFile(), "GOMAXPROCS=2", "GOTRACEBACK=all")
	if a.zones != "" && !m.isBlind() {
		cmd.Env = append(cmd.Env, "ZONEINFO="+a.zones)
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for us
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("chaos: start %s: %w", m.name, err)
	}
	ended := make(chan struct{})
	m.mu.Lock()
	m.cmd, m.stdin, m.ended = cmd, stdin, ended
	m.mu.Unlock()
	go func() {
		_ = cmd.Wait() // how it ended is the fault's business
		close(ended)
	}()
	return nil
}

func (m *member) pointsFile() string { return filepath.Join(m.arena.dir, m.name+".points") }

// process returns who runs now.
func (m *member) process() audit.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return audit.Process{Node: m.name}
	}
	return audit.Process{Node: m.name, PID: m.cmd.Process.Pid}
}

// gone is closed when the process has ended.
func (m *member) gone() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ended
}

// alive reports whether a process runs.
func (m *member) alive() bool {
	ended := m.gone()
	if ended == nil {
		return false
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// signal sends a signal to the process that runs now.
func (m *member) signal(s syscall.Signal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd == nil {
		return errors.New("no process")
	}
	return m.cmd.Process.Signal(s)
}

// awaitEnd waits for the process to end.
func (m *member) awaitEnd(ctx context.Context, patience time.Duration) error {
	select {
	case <-m.gone():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience):
		return fmt.Errorf("chaos: %s has not ended after %v", m.name, patience)
	}
}

// awaitReady waits until the node says that it is ready.
func (m *member) awaitReady(ctx context.Context, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		a, err := m.ask(ctx, time.Second, control.Request{Verb: control.Ready})
		if err == nil {
			err = a.Err()
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !m.alive() || time.Now().After(deadline) {
			return fmt.Errorf("chaos: %s is not ready: %w", m.name, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ask has the node do something.
func (m *member) ask(ctx context.Context, patience time.Duration, r control.Request) (control.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return control.Call(ctx, filepath.Join(m.arena.dir, m.name+".sock"), r)
}

// claim marks the member as the victim of a fault, so that no other fault chooses
// it; false when one has.
func (m *member) claim() bool {
	if !m.alive() {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy {
		return false
	}
	m.busy = true
	return true
}

func (m *member) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy, m.freed = false, time.Now()
}

// unclaim takes back a claim of which nothing came.
func (m *member) unclaim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
}

// wellAfter is how long a member has been left alone when it knows of each other one
// whether it is there: a LeaseTTL and a beat.
const wellAfter = 6 * time.Second

// isWell reports whether the member can take over from any other.
func (m *member) isWell() bool {
	alive := m.alive()
	m.mu.Lock()
	defer m.mu.Unlock()
	return alive && !m.busy && time.Since(m.freed) >= wellAfter
}

// setMute notes that the node cannot be reached, or can again.
func (m *member) setMute(v bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mute = v
}

func (m *member) isMute() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mute
}

// setBlind notes that processes which are started from now on have no data of our zones, or do.
func (m *member) setBlind(v bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blind = v
}

func (m *member) isBlind() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.blind
}

// close ends the process, however it is, and its proxy.
func (m *member) close() {
	if m.alive() {
		_ = m.signal(syscall.SIGKILL)
		<-m.gone()
	}
	if m.proxy != nil {
		_ = m.proxy.Close()
	}
}
