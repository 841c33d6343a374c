package pgtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Standby makes a streaming standby of a cluster and waits until it streams. It
// is a cluster of its own: the caller has to close it. To replicate to it
// synchronously, set the primary's synchronous_standby_names by Configure.
func (c *Cluster) Standby(ctx context.Context, o Options) (*Cluster, error) {
	name := cmp.Or(o.Name, "standby")
	o.Bin = cmp.Or(o.Bin, c.bin)
	s, err := build(o, func(s *Cluster) error { return s.copyOf(c, name) })
	if err != nil {
		return nil, err
	}
	if err := c.awaitStandby(ctx, name); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// copyOf makes the data of a standby.
func (c *Cluster) copyOf(primary *Cluster, name string) error {
	port := strconv.Itoa(primary.port)
	err := c.home.do(filepath.Join(c.bin, "pg_basebackup"), "-D", c.data(), "-h", "127.0.0.1", "-p", port, "-U", superuser, "-X", "stream", "-c", "fast", "--no-sync")
	if err != nil {
		return err
	}
	return c.follow(primary, name)
}

// Follow starts a cluster that was stopped as a standby of another one, which has all that it
// has: of its own former standby, which was promoted since.
func (c *Cluster) Follow(primary *Cluster) error {
	if err := c.follow(primary, "standby"); err != nil {
		return err
	}
	return c.Start()
}

// follow has the data of a standby follow a primary from the next start on.
func (c *Cluster) follow(primary *Cluster, name string) error {
	signal := filepath.Join(c.data(), "standby.signal")
	if err := os.WriteFile(signal, nil, 0o600); err != nil {
		return err
	}
	if err := c.home.account.own(signal); err != nil {
		return err
	}
	return c.write(map[string]string{
		"primary_conninfo":          fmt.Sprintf("host=127.0.0.1 port=%s user=%s application_name=%s", strconv.Itoa(primary.port), superuser, name),
		"synchronous_standby_names": "", // those of the primary would hold it up once it is promoted
	})
}

// awaitStandby waits until a standby streams.
func (c *Cluster) awaitStandby(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		names, err := c.Exec(ctx, superuser, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND application_name = "+quote(name))
		if err != nil {
			return err
		}
		if names != "0" {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Promote makes a standby a primary and waits until it is one.
func (c *Cluster) Promote() error {
	done, err := c.Exec(context.Background(), superuser, fmt.Sprintf("SELECT pg_promote(true, %d)", int(patience.Seconds())))
	if err == nil && done != "t" {
		err = fmt.Errorf("pgtest: the standby is not promoted after %v", patience)
	}
	return err
}
