package lease

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xxljob/xxljob/store"
)

// shared is a store with nodes that beat, look and take shards in turns.
type shared struct {
	now    time.Time
	view   store.View
	leases []*Leases
	has    map[string]bool // which nodes have data of the zone
	moves  []string        // of the shard with jobs in it
}

const (
	someZone  = "Asia/New_Town"
	zoneShard = 2
)

// share makes nodes that all have data of zones, and of those named of someZone too.
func share(nodes int, has ...string) *shared {
	c := &shared{now: time.Now(), has: map[string]bool{}}
	for i := range 6 {
		c.view.Shards = append(c.view.Shards, store.Shard{ID: i})
	}
	for i := range nodes {
		inc := fmt.Sprintf("%c-1", 'a'+i)
		c.view.Nodes = append(c.view.Nodes, store.Node{ID: inc[:1], Incarnation: inc, Zones: true})
		c.leases = append(c.leases, New(inc, Times{Window: 4 * time.Second, TTL: 5 * time.Second, LostAfter: 30 * time.Second}, func() []store.Attachment { return nil }))
	}
	for _, name := range has {
		c.has[name] = true
	}
	return c
}

// pass has each node do what it does once a second, so many times. The owner of the shard has a look at its jobs.
func (c *shared) pass(seconds int) {
	for range seconds {
		c.now = c.now.Add(time.Second)
		for i, l := range c.leases {
			if l == nil {
				continue
			}
			name := l.Incarnation[:1]
			me := &c.view.Nodes[i]
			me.Beats++
			me.UnknownZones = l.Missing()
			for _, n := range c.view.Nodes {
				if len(n.UnknownZones) > 0 && !c.has[name] {
					l.Miss(n.UnknownZones)
				}
			}
			v := c.view
			v.Nodes, v.Shards = slices.Clone(v.Nodes), slices.Clone(v.Shards)
			l.Look(v, selfVerdict{}, c.now, c.now)
			give, take, above := l.Shares(v.Shards, c.now)
			l.Drop(give)
			for _, sh := range give {
				c.view.Shards[sh.ID].Owner = ""
			}
			taken := slices.Concat(take, above)
			for j, sh := range taken {
				taken[j].Owner, taken[j].Epoch = l.Incarnation, sh.Epoch+1
				c.view.Shards[sh.ID] = taken[j]
				if sh.ID == zoneShard {
					c.moves = append(c.moves, name)
				}
			}
			l.Add(taken, above, c.now)
			lacks := map[int]Lack{}
			if c.owner() == name && !c.has[name] {
				lacks[zoneShard] = Lack{Cause: store.TroubleUnknownZone, Zones: []string{someZone}}
			}
			l.Lack(lacks)
		}
	}
}

func (c *shared) owner() string {
	name, _, _ := strings.Cut(c.view.Shards[zoneShard].Owner, "-")
	return name
}

// end has a node go.
func (c *shared) end(name string) {
	for i, l := range c.leases {
		if l != nil && l.Incarnation[:1] == name {
			c.leases[i] = nil
			c.view.Nodes[i].Left = true
			for j := range c.view.Shards {
				if c.view.Shards[j].Owner == l.Incarnation {
					c.view.Shards[j].Owner = ""
				}
			}
		}
	}
}

// TestAZoneThatSomeNodesLack: all nodes have data of zones, and of one that is new only some. A shard
// with a job in it goes to one of those, by one move, and stays there; nodes that lack it too leave
// it alone. Where all lack it, it is somebody's; who comes to own it has a look once.
func TestAZoneThatSomeNodesLack(t *testing.T) {
	for _, tt := range []struct {
		nodes int
		has   []string
	}{
		{2, []string{"b"}}, {2, []string{"a"}}, {3, []string{"c"}}, {3, []string{"b", "c"}}, {3, []string{"a"}}, {4, []string{"d"}}, {6, []string{"b"}}, {3, nil}, {2, []string{"a", "b"}},
	} {
		t.Run(fmt.Sprint(tt.nodes, tt.has), func(t *testing.T) {
			c := share(tt.nodes, tt.has...)
			c.pass(1)
			began := len(c.moves)
			c.pass(10)
			if owner := c.owner(); owner == "" || len(tt.has) > 0 && !c.has[owner] {
				t.Errorf("after ten seconds the shard is %q's, and %q have the zone; it went %q", owner, tt.has, c.moves)
			}
			c.pass(30 * 60)
			if owner := c.owner(); owner == "" || len(tt.has) > 0 && !c.has[owner] {
				t.Errorf("in the end the shard is %q's; it went %q", owner, c.moves)
			}
			if moves := len(c.moves) - began; moves > 2 {
				t.Errorf("it went %q in half an hour", c.moves)
			}
			had := map[string]int{}
			for _, sh := range c.view.Shards {
				had[sh.Owner]++
			}
			for owner, n := range had {
				if least := 6 / tt.nodes; owner == "" || n > least+2 {
					t.Errorf("%q has %d of six shards", owner, n)
				}
			}
			// Those who have it go: what is left takes the shard, and keeps it.
			for _, name := range tt.has {
				if len(tt.has) < tt.nodes {
					c.end(name)
				}
			}
			c.pass(3 * 60)
			if owner := c.owner(); owner == "" || len(tt.has) < tt.nodes && c.has[owner] {
				t.Errorf("without %q the shard is %q's", tt.has, owner)
			}
		})
	}
}
