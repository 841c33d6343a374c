package pgtest

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// watchdog ends the process that it was last told of and removes the directory
// when its input ends, which it does when the writer is gone, even by SIGKILL.
// A line of input is a process id and a signal; "0 0" stands for no process.
const watchdog = `
pid=0
while read -r p s; do pid=$p signal=$s; done
alive() {
	kill -0 "$pid" || return 1
	! grep -q '^State:.Z' "/proc/$pid/status" # nobody may reap what is ours
}
if [ "$pid" != 0 ]; then
	kill -"$signal" "$pid"
	i=0
	while alive && [ $i -lt 100 ]; do sleep 0.1 || sleep 1; i=$((i + 1)); done
	alive && kill -9 "$pid"
fi
rm -rf "$1"
`

// roomInMemory is what has to be free where files are to lie in memory: twice what the tests of
// store/postgres have there, which are those that have most.
const roomInMemory = 4 << 30

// home is a temporary directory with at most one process at work in it. Both
// are gone when we are.
type home struct {
	dir     string
	account *account
	dying   syscall.Signal // ends the process when we are gone
	env     []string       // added to that of the process

	dog  *exec.Cmd
	mu   sync.Mutex // guards what follows
	tell io.WriteCloser
	proc *process // nil when none was started
}

// newHome makes the directory and starts its watchdog. dying is what ends the
// process at once; inMemory says that the files may lie in memory.
func newHome(dying syscall.Signal, inMemory bool) (*home, error) {
	a, err := unprivileged()
	if err != nil {
		return nil, err
	}
	root := ""
	if inMemory && os.Getenv("TMPDIR") == "" {
		root = memoryRoot("/dev/shm", roomInMemory)
	}
	dir, err := os.MkdirTemp(cmp.Or(root, a.tempRoot()), "pgtest-")
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	h := &home{dir: dir, account: a, dying: dying, dog: exec.Command("/bin/sh", "-c", watchdog, "pgtest-watchdog", dir)}
	h.dog.Dir = "/"
	h.dog.SysProcAttr = attributes(nil, 0)
	if h.tell, err = h.dog.StdinPipe(); err == nil {
		err = h.dog.Start()
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("pgtest: watchdog: %w", err)
	}
	if err := a.own(dir); err != nil {
		h.close()
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return h, nil
}

// path returns the name of a file of the directory.
func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

// command prepares a program that runs as the account, with nothing of our
// environment that could lead it astray, and writes to the log.
func (h *home) command(log io.Writer, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = h.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.dir, "TMPDIR=" + h.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes(h.account, h.dying)
	return cmd
}

// do runs a program to its end; its output is in the error.
func (h *home) do(program string, args ...string) error {
	var out strings.Builder
	p, err := spawn(h.command(&out, program, args...))
	if err != nil {
		return err
	}
	<-p.done
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s: %v\n%s", filepath.Base(program), p.cmd.ProcessState, out.String())
	}
	return nil
}

// start starts the process of the directory and tells the watchdog of it.
func (h *home) start(program string, args ...string) (*process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc != nil && h.proc.running() {
		return nil, fmt.Errorf("process %d is running", h.proc.pid())
	}
	log, err := os.OpenFile(h.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd := h.command(log, program, args...)
	cmd.Env = append(cmd.Env, h.env...)
	p, err := spawn(cmd)
	if err != nil {
		return nil, err
	}
	h.proc = p
	_, err = fmt.Fprintln(h.tell, p.pid(), int(h.dying))
	return p, err
}

// stop ends the process, if one is running.
func (h *home) stop(signal os.Signal, patience time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc == nil {
		return nil
	}
	if h.proc.running() {
		if err := h.proc.stop(signal, patience); err != nil {
			return err
		}
	}
	h.proc = nil
	_, err := fmt.Fprintln(h.tell, 0, 0)
	return err
}

// pid returns the id of the process, 0 when none is running.
func (h *home) pid() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc == nil || !h.proc.running() {
		return 0
	}
	return h.proc.pid()
}

// log returns what the process has written.
func (h *home) log() string {
	text, err := os.ReadFile(h.path("log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// close lets the watchdog end the process and remove the directory, and waits
// until it has.
func (h *home) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell.Close()
	if err := h.dog.Wait(); err != nil {
		return fmt.Errorf("pgtest: %s is not removed: %w", h.dir, err)
	}
	return nil
}
