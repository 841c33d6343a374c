//go:build unix

package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// stepProgram steps its clock as a node does.
const stepProgram = `package main

import (
	"os"
	"time"
)

func main() {
	for _, d := range []time.Duration{time.Hour, -48 * time.Hour, 0} {
		if err := stepClock(d); err != nil {
			println(err.Error())
			os.Exit(1)
		}
	}
}
`

// TestClockStep builds a program with the clock that nodes step, and steps it. It ends with an
// error where it does not see the step. No more of the standard library is built anew for it than
// it needs.
func TestClockStep(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a part of the standard library anew; leave out -short")
	}
	t.Parallel()
	source, program := t.TempDir(), filepath.Join(t.TempDir(), "step")
	args := []string{"build", "-o", program, "-tags", "clockstep"}
	overlay, err := overlayTime(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, "-overlay", overlay)
	for _, name := range []string{"node/step_on.go", "node/clock.go", "main.go"} {
		text, err := []byte(stepProgram), error(nil)
		if name != "main.go" {
			text, err = os.ReadFile(name)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(source, filepath.Base(name)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Base(name))
	}
	build := exec.Command("go", args...)
	build.Dir = source
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
