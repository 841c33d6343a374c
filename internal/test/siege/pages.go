//go:build unix

package siege

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/xxljob/xxljob/wire"
)

const (
	// repeatItems is how many results a page of repeats has: with their texts it is some
	// 419 kB long.
	repeatItems = 909
	repeatText  = 400
	// floodItems and floodText make about the largest page that is read: 10,000 results,
	// just below 4 MiB.
	floodItems = wire.MaxCallbacks
	floodText  = 355
)

// page is a callback with a failure for each id, with a text of so many bytes. It is
// written as Java executors from 2.3 on write it, without what others add.
func page(ids []int64, text int) []byte {
	msg := strings.Repeat("x", text)
	body := make([]byte, 0, len(ids)*(text+70)+2)
	for i, id := range ids {
		before := ","
		if i == 0 {
			before = "["
		}
		body = fmt.Appendf(body, `%s{"logId":%d,"handleCode":%d,"handleMsg":"%s"}`, before, id, wire.CodeFail, msg)
	}
	return append(body, ']')
}

// repeated is one id, many times.
func repeated(id int64, n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = id
	}
	return ids
}

// anyOf are ids of a list, in a random order, and again and again where it is shorter.
func anyOf(r *rand.Rand, list []int64, n int) []int64 {
	ids := make([]int64, 0, n)
	for len(ids) < n && len(list) > 0 {
		for _, i := range r.Perm(len(list)) {
			if ids = append(ids, list[i]); len(ids) == n {
				break
			}
		}
	}
	return ids
}

// unknown are ids that look like those of runs, and are none: close to a real one, so that
// they are looked for among the runs of today.
func unknown(r *rand.Rand, near int64, n int) []int64 {
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = near - 1 - r.Int64N(1<<30)
	}
	return ids
}
