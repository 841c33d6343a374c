//go:build unix

package chaos

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
	"github.com/xxljob/xxljob/internal/test/chaos/control"
)

// A node without the data of a zone, as in an image without tzdata, beside nodes that have it.

// zone is known to nodes that are told where its data is: no system has it. It is eight hours
// ahead, whole minutes, so that what is due every second of a part of a minute is so anywhere.
const zone = "Chaos/Standard"

// openZones makes a database whose nodes have the data of our zone, but for those that are blind.
func openZones(ctx context.Context, a *arena) error {
	a.zones = filepath.Join(a.dir, "zoneinfo")
	// A file of zic's first version with one type of time, and no transitions.
	data := append([]byte("TZif"), make([]byte, 16)...)
	for _, count := range []uint32{0, 0, 0, 0, 1, 4} {
		data = binary.BigEndian.AppendUint32(data, count)
	}
	data = binary.BigEndian.AppendUint32(data, 8*60*60)
	data = append(data, 0, 0)
	data = append(data, "CST\x00"...)
	file := filepath.Join(a.zones, zone)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	return a.openPrimary(ctx)
}

// blind has one node after the other come back without the data of the zone for a while. Jobs in
// the zone are in half of the shards, with others. Those that the node gets it gives to the others at
// once: nothing may be skipped.
func blind(n int, d time.Duration) func(context.Context, *arena) error {
	return func(ctx context.Context, a *arena) error {
		for i := range shards / 2 {
			if _, err := a.ensure(ctx, nil, control.Job{Name: fmt.Sprintf("zoned %d", i), Kind: control.Cron, Period: 1000, Zone: zone, Route: "NEAREST"}, false); err != nil {
				return err
			}
		}
		_ = pause(ctx, 3*time.Second)
		for range n {
			m, err := a.awaitVictim(ctx)
			if err != nil {
				return err
			}
			begun := now()
			err = m.reopen(ctx, true)
			f := audit.Fault{Name: "no data of a zone", Effect: audit.Harmless, Victim: m.process(), Begin: begun}
			_ = pause(ctx, d)
			if err == nil {
				err = m.reopen(ctx, false)
			}
			f.End = now()
			a.journal.fault(f)
			m.release()
			if err != nil {
				return err
			}
			_ = pause(ctx, 5*time.Second)
		}
		return ctx.Err()
	}
}

// reopen replaces the process by one that is blind, or is not.
func (m *member) reopen(ctx context.Context, blind bool) error {
	f := audit.Fault{Name: fmt.Sprintf("SIGTERM, and back blind=%t", blind), Effect: audit.Leaves, Victim: m.process(), Shards: m.arena.ownedBy(ctx, m), Begin: now()}
	if err := m.signal(syscall.SIGTERM); err != nil {
		return err
	}
	m.setBlind(blind)
	return m.replace(ctx, f, 0)
}
