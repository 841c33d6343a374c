package route

import (
	"bufio"
	"crypto/md5"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestHashAgreesWithXXLJob reads what XXL-JOB chooses.
func TestHashAgreesWithXXLJob(t *testing.T) {
	f, err := os.Open("testdata/consistent_hash.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, rows := NewHash(), 0
	for in := bufio.NewScanner(f); in.Scan(); {
		if strings.HasPrefix(in.Text(), "#") {
			continue
		}
		row := strings.Split(in.Text(), "\t")
		jobID, err := strconv.ParseInt(row[0], 10, 64)
		if err != nil || len(row) != 3 {
			t.Fatalf("row %q: %v", row, err)
		}
		for range 2 { // made, and remembered
			if got := mustRoute(t, h, jobID, strings.Split(row[1], ",")); got != row[2] {
				t.Errorf("job %d of %s goes to %s, want %s", jobID, row[1], got, row[2])
			}
		}
		rows++
	}
	if rows != 100 {
		t.Errorf("%d rows, want 100", rows)
	}
}

// modelHash walks all nodes of all addresses: no ring, no cache, no sorting.
func modelHash(jobID int64, addrs []string) string {
	at := func(key string) uint32 {
		b := md5.Sum([]byte(key))
		return uint32(b[3])<<24 | uint32(b[2])<<16 | uint32(b[1])<<8 | uint32(b[0])
	}
	nodes := map[uint32]string{} // a later put at the same point overwrites
	for _, a := range addrs {
		for i := range 100 {
			nodes[at(fmt.Sprintf("SHARD-%s-NODE-%d", a, i))] = a
		}
	}
	job := at(strconv.FormatInt(jobID, 10))
	distance := ^uint32(0)
	var owner string
	for p, a := range nodes {
		if d := p - job; d <= distance { // unsigned, so it wraps behind the last node
			distance, owner = d, a
		}
	}
	return owner
}

// TestHashAgainstModel uses few slots and lists of the same ends, in changing
// order, with repetitions and in a reused slice, so that what is remembered is
// wrong more often than right.
func TestHashAgainstModel(t *testing.T) {
	rng := seeded(t)
	h := NewHash()
	h.rings = newBounded[*ring](4, 20)
	pool := addresses(12)
	buf := make([]string, 0, 16)
	for step := range 1500 {
		buf = append(buf[:0], pool[0])
		for range rng.IntN(6) {
			buf = append(buf, pool[rng.IntN(len(pool))])
		}
		buf = append(buf, pool[1])
		if rng.IntN(4) == 0 {
			rng.Shuffle(len(buf), func(i, j int) { buf[i], buf[j] = buf[j], buf[i] })
		}
		jobID := rng.Int64N(3*recentJobs) - 2
		if rng.IntN(4) == 0 {
			jobID = int64(rng.Uint64())
		}
		if got, want := mustRoute(t, h, jobID, buf), modelHash(jobID, buf); got != want {
			t.Fatalf("step %d: job %d of %v goes to %s, want %s", step, jobID, buf, got, want)
		}
	}
}

// TestHashLaterNodeTakesThePoint finds nodes of different addresses on one
// point, of which a hundred thousand nodes have some.
func TestHashLaterNodeTakesThePoint(t *testing.T) {
	addrs := addresses(1500)
	first := map[uint32]int{}
	collisions := 0
	r, reversed := newRing(addrs), slices.Clone(addrs)
	slices.Reverse(reversed)
	rr := newRing(reversed)
	r.build()
	rr.build()
	for i, a := range addrs {
		for n := range 100 {
			p := point(fmt.Appendf(nil, "SHARD-%s-NODE-%d", a, n))
			j, taken := first[p]
			if !taken {
				first[p] = i
				continue
			}
			collisions++
			if got := r.owner(p); got != i {
				t.Errorf("point %d: owner %d, want %d, the later", p, got, i)
			}
			if got := reversed[rr.owner(p)]; got != addrs[j] {
				t.Errorf("point %d, reversed: owner %s, want %s", p, got, addrs[j])
			}
		}
	}
	if collisions == 0 {
		t.Error("no two nodes on one point: the test tests nothing")
	}
	if len(r.points) != len(first) {
		t.Errorf("%d points, want %d", len(r.points), len(first))
	}
}

func TestHashWrapsBehindTheLastNode(t *testing.T) {
	r := newRing(addresses(2))
	r.build()
	if r.owner(^uint32(0)) != r.owner(0) {
		t.Error("behind the last node is not the first one")
	}
	for i, p := range r.points {
		if got := r.owner(p); got != int(r.owners[i]) {
			t.Errorf("node %d does not own its own point", i)
		}
	}
}

func TestHashMovesFewJobsWhenAnAddressLeaves(t *testing.T) {
	h, addrs := NewHash(), addresses(10)
	for jobID := range int64(1000) {
		before := mustRoute(t, h, jobID, addrs)
		after := mustRoute(t, h, jobID, addrs[:9])
		if before != addrs[9] && before != after {
			t.Fatalf("job %d moved from %s to %s, though neither left", jobID, before, after)
		}
	}
}

func TestHashBuildsARingOnce(t *testing.T) {
	h, addrs := NewHash(), addresses(10)
	r := h.ring(addrs)
	for range 3 {
		if h.ring(addresses(10)) != r { // equal, not the same
			t.Fatal("an equal list got a ring of its own")
		}
	}
	for i := range h.recent {
		h.recent[i].Store(nil)
	}
	if h.ring(addrs) != r {
		t.Error("the ring was not kept when its slot was taken")
	}
}

func TestHashKeepsABoundedNumberOfRings(t *testing.T) {
	h := NewHash()
	h.rings = newBounded[*ring](3, 1000)
	for i := range 20 {
		mustRoute(t, h, 1, []string{strconv.Itoa(i)})
	}
	if n := len(h.rings.entries); n != 3 {
		t.Errorf("%d rings kept, want 3", n)
	}
}
