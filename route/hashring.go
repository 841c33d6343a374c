package route

import (
	"crypto/md5"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"sync"
)

// virtualNodes is how often each address stands on a ring. XXL-JOB: 100.
const virtualNodes = 100

// ring is the consistent-hash ring of one list of addresses. It does not change
// once built.
//
// XXL-JOB: an address has virtual nodes with the keys SHARD-<addr>-NODE-<i>, i
// from 0; a job's key is its id in decimal. Where a key stands is told by its
// MD5. A job belongs to the first node at or after its own point, or, behind
// the last one, to the first of all.
type ring struct {
	addrs []string // our own copy, since the caller's may change

	once   sync.Once // of build
	points []uint32  // the nodes' places, ascending, without repetition
	owners []int32   // the index in addrs of each

	// starts tells where to look: it holds, for each value of a point's upper
	// bits, the first node with these or greater ones. There are as many
	// values as nodes, about, and MD5 spreads the nodes evenly, so the node
	// looked for is there or a step or two on. A binary search would guess
	// wrong half a dozen times, which takes longer than all the rest.
	starts []int32
	shift  uint // of a point, to leave the upper bits
}

func newRing(addrs []string) *ring { return &ring{addrs: slices.Clone(addrs)} }

// build places the nodes. Two on one point are rare but must not be left to
// chance: as in XXL-JOB, the one put later takes the point. That also settles
// an address that is listed twice.
func (r *ring) build() {
	// A node is point<<32 | number, so sorting puts the later of two behind.
	nodes := make([]uint64, 0, len(r.addrs)*virtualNodes)
	var key []byte
	for _, addr := range r.addrs {
		key = append(append(append(key[:0], "SHARD-"...), addr...), "-NODE-"...)
		for i := range int64(virtualNodes) {
			p := point(strconv.AppendInt(key, i, 10))
			nodes = append(nodes, uint64(p)<<32|uint64(len(nodes)))
		}
	}
	slices.Sort(nodes)

	r.points = make([]uint32, 0, len(nodes))
	r.owners = make([]int32, 0, len(nodes))
	for i, n := range nodes {
		p := uint32(n >> 32)
		if i+1 < len(nodes) && uint32(nodes[i+1]>>32) == p {
			continue
		}
		r.points = append(r.points, p)
		r.owners = append(r.owners, int32(uint32(n)/virtualNodes))
	}
	r.index()
}

// index makes starts.
func (r *ring) index() {
	upper := uint(bits.Len(uint(len(r.points))))
	r.shift = 32 - upper
	r.starts = make([]int32, 1<<upper)
	i := 0
	for v := range r.starts {
		for i < len(r.points) && r.points[i]>>r.shift < uint32(v) {
			i++
		}
		r.starts[v] = int32(i)
	}
}

// owner returns the index of the address that owns a point.
func (r *ring) owner(p uint32) int {
	i := int(r.starts[p>>r.shift])
	for i < len(r.points) && r.points[i] < p {
		i++
	}
	if i == len(r.points) {
		i = 0
	}
	return int(r.owners[i])
}

// point returns where a key stands on a ring. XXL-JOB: the first four bytes of
// its MD5, little-endian, unsigned.
func point(key []byte) uint32 {
	sum := md5.Sum(key)
	return binary.LittleEndian.Uint32(sum[:4])
}

func jobPoint(jobID int64) uint32 {
	var buf [20]byte // the longest int64 in decimal
	return point(strconv.AppendInt(buf[:0], jobID, 10))
}
