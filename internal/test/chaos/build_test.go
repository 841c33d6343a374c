//go:build unix

package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/xxljob/xxljob/internal/test/await"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// TestClockStep builds a node whose wall clock can be stepped and steps it. The
// answer is an error where the program does not see the step.
func TestClockStep(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library anew; leave out -short")
	}
	t.Parallel()
	dir := t.TempDir()
	program := built(t)
	c := exec.Command(program, "-name", "n", "-dir", dir, "-store", "memory")
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe() // the node ends with it
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	ask := func(r control.Request) (control.Answer, error) {
		return control.Call(t.Context(), filepath.Join(dir, "n.sock"), r)
	}
	await.Until(t, "the node is ready", func() bool {
		a, err := ask(control.Request{Verb: control.Ready})
		return err == nil && a.Error == ""
	})
	for _, d := range []time.Duration{time.Hour, -48 * time.Hour, 0} {
		if a, err := ask(control.Request{Verb: control.Step, StepBy: int64(d)}); err != nil || a.Error != "" {
			t.Errorf("step by %v: %+v %v", d, a, err)
		}
	}
}
