//go:build unix

package siege

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// The roles of a process, its first argument: the program starts itself again.
const (
	RoleNode    = "node"
	RoleHostile = "hostile"
)

// message is one line of JSON between the program and a child, in both directions. A child
// reads its configuration first, as a line of its own. It ends when its input ends.
type message struct {
	Kind string `json:"kind"`
	// Admin and Lost are of a node that is ready: where it is, and which runs of the
	// hostile app have ended as lost.
	Admin string  `json:"admin,omitempty"`
	Lost  []int64 `json:"lost,omitempty"`
	// Console and Heavy are of a node that is ready, too: where the console is, and a run of the
	// hostile app with a large parameter.
	Console string `json:"console,omitempty"`
	Heavy   int64  `json:"heavy,omitempty"`
	// Heap, Total and Goroutines are of a sample of a node: live bytes, and all that it has
	// from the system.
	Heap       int64 `json:"heap,omitempty"`
	Total      int64 `json:"total,omitempty"`
	Goroutines int64 `json:"goroutines,omitempty"`
	// Counts are what a hostile app has done by now.
	Counts map[string]int64 `json:"counts,omitempty"`
	Error  string           `json:"error,omitempty"`
}

// The kinds of messages. The orders are answered with kindDone.
const (
	kindReady  = "ready"
	kindSample = "sample"
	kindCounts = "counts"
	kindDone   = "done"
	orderJobs  = "jobs"  // to a node: add the jobs
	orderStop  = "stop"  // to a node: stop the jobs
	orderBegin = "begin" // to a hostile app: attack
)

// child is a process of ours.
type child struct {
	role    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan message  // kindReady and kindDone
	ended   chan struct{} // closed when the process has been reaped
}

// startChild starts this program in a role. Samples and counts go to news, in order.
func startChild(role string, cfg any, log io.Writer, news func(message)) (*child, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{role: role, cmd: exec.Command(program, role), answers: make(chan message, 16), ended: make(chan struct{})}
	c.cmd.Stderr = log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for us
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("siege: start the %s: %w", role, err)
	}
	go c.read(out, news)
	return c, json.NewEncoder(c.stdin).Encode(cfg)
}

// read takes the child's messages in until it ends.
func (c *child) read(out io.Reader, news func(message)) {
	defer close(c.ended)
	for lines := json.NewDecoder(out); ; {
		var m message
		if err := lines.Decode(&m); err != nil {
			break
		}
		if m.Kind == kindReady || m.Kind == kindDone {
			c.answers <- m
		} else {
			news(m)
		}
	}
	_ = c.cmd.Wait() // how it ended is in its log
}

// answer waits for an answer of the child.
func (c *child) answer(ctx context.Context, patience time.Duration) (message, error) {
	select {
	case m := <-c.answers:
		if m.Error != "" {
			return m, fmt.Errorf("siege: the %s: %s", c.role, m.Error)
		}
		return m, nil
	case <-c.ended:
		return message{}, fmt.Errorf("siege: the %s has ended: %v", c.role, c.cmd.ProcessState)
	case <-ctx.Done():
		return message{}, ctx.Err()
	case <-time.After(patience):
		return message{}, fmt.Errorf("siege: no answer of the %s within %v", c.role, patience)
	}
}

// ask has the child do something, and waits until it has.
func (c *child) ask(ctx context.Context, order string, patience time.Duration) error {
	if err := json.NewEncoder(c.stdin).Encode(message{Kind: order}); err != nil {
		return fmt.Errorf("siege: tell the %s to %s: %w", c.role, order, err)
	}
	_, err := c.answer(ctx, patience)
	return err
}

// close ends the child in good order, or after a while without.
func (c *child) close(patience time.Duration) error {
	_ = c.stdin.Close()
	select {
	case <-c.ended:
		if !c.cmd.ProcessState.Success() {
			return fmt.Errorf("siege: the %s ended with %v", c.role, c.cmd.ProcessState)
		}
		return nil
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		<-c.ended
		return fmt.Errorf("siege: the %s did not end within %v", c.role, patience)
	}
}

// parent is the other end: who has started this process.
type parent struct {
	in  *json.Decoder
	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

// newParent reads the configuration.
func newParent(in io.Reader, out io.Writer, cfg any) (*parent, error) {
	p := &parent{in: json.NewDecoder(bufio.NewReader(in)), out: json.NewEncoder(out)}
	return p, p.in.Decode(cfg)
}

func (p *parent) tell(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.out.Encode(m) // where nobody reads any more the input has ended too
}

// obey carries out orders until the input ends.
func (p *parent) obey(do func(order string) error) error {
	for {
		var m message
		if err := p.in.Decode(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		done := message{Kind: kindDone}
		if err := do(m.Kind); err != nil {
			done.Error = err.Error()
		}
		p.tell(done)
	}
}
