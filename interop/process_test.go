package interop_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a child that ends with its test. Its output is shown when the test
// has failed.
type process struct {
	cmd  *exec.Cmd
	out  *output
	done chan struct{} // closed when it has been waited for
}

// environment is the same wherever the tests run: no proxies, and UTF-8.
func environment(dir string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8", "PYTHONUTF8=1", "PYTHONUNBUFFERED=1"}
}

// start starts a process. in may be nil; stdout, where it is not nil, gets what
// is otherwise kept with the rest of the output.
func start(t *testing.T, name string, in io.Reader, stdout io.Writer, dir string, argv ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), out: &output{}, done: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.SysProcAttr = dir, environment(dir), attributes()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, p.out, p.out
	if stdout != nil {
		p.cmd.Stdout = stdout
	}
	p.cmd.WaitDelay = 5 * time.Second
	started := make(chan error)
	go func() { // keeps its thread, for on Linux the child dies with it; ended by the child's end
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("output of %s (process %d):\n%s", name, p.cmd.Process.Pid, p.out)
		}
	})
	return p
}

// kill ends the process at once, as kill -9 does.
func (p *process) kill() {
	select {
	case <-p.done: // its number may be another's by now
	default:
		killGroup(p.cmd.Process.Pid)
		<-p.done
	}
}

// terminate asks the process to end, and waits until it has.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("SIGTERM: %v", err)
	}
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		t.Errorf("the process goes on a minute after SIGTERM")
		p.kill()
	}
}

// maxOutput is how much output of a process is kept: the last of it.
const maxOutput = 16 << 10

// output keeps the end of what is written.
type output struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	if over := len(o.text) - maxOutput; over > 0 {
		o.text = bytes.Clone(o.text[over:])
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}
