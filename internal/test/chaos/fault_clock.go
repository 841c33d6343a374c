//go:build unix

package chaos

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/pgtest"
)

// Steps of the database server's clock, which is the one that nodes go by. A library that is
// loaded before the others makes them, so that this needs a C compiler.

//go:embed testdata/clock.c
var steppedClock []byte

// errNoCompiler says that nothing can be said of a fault on this machine.
var errNoCompiler = errors.New("there is no C compiler")

// openStepped makes a database whose clock can be stepped. The auditor goes by the machine's.
func openStepped(ctx context.Context, a *arena) error {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return errNoCompiler
	}
	dir, err := os.MkdirTemp("", "chaos-clock-")
	if err != nil {
		return err
	}
	a.later = append(a.later, func() error { return os.RemoveAll(dir) })
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	a.clock = filepath.Join(dir, "step")
	// The server has an account of its own.
	err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(source, steppedClock, 0o600), os.WriteFile(a.clock, make([]byte, 8), 0o644))
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, cc, "-shared", "-fPIC", "-O1", "-o", library, source).CombinedOutput(); err != nil {
		return fmt.Errorf("chaos: compile a clock: %w\n%s", err, out)
	}
	a.plain = true
	return a.openServer(ctx, pgtest.Options{Env: []string{"LD_PRELOAD=" + library, "CLOCKSTEP_FILE=" + a.clock}})
}

// stepServer has the server's clock ahead by as much for a few seconds each.
func stepServer(ctx context.Context, a *arena) error {
	_ = pause(ctx, 5*time.Second)
	for _, by := range []time.Duration{time.Hour, 31 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		a.phase(fmt.Sprintf("server's clock +%v", by))
		f := audit.Fault{Name: fmt.Sprintf("clock of the server %+v", by), Effect: audit.Harmless, Begin: now(), Trouble: "clock", ToldWithin: 10_000}
		err := a.stepClock(by)
		_ = pause(ctx, 5*time.Second)
		err = errors.Join(err, a.stepClock(0))
		f.End = now()
		a.journal.fault(f)
		if err != nil {
			return err
		}
		_ = pause(ctx, 25*time.Second)
	}
	return ctx.Err()
}

// stepClock sets the server's clock ahead of the machine's.
func (a *arena) stepClock(by time.Duration) error {
	// The server has the file mapped: it is written in place.
	f, err := os.OpenFile(a.clock, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(binary.NativeEndian.AppendUint64(nil, uint64(by/time.Second)))
	return errors.Join(err, f.Close())
}
