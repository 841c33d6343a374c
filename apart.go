package xxljob

// Starts that a store makes one by one, each in a transaction of its own: those of
// broadcasts, with their parts, and refusals. Input: attempts, from start.go. Output: the
// same in small batches. When a store has been away for a while there are hundreds of them
// at once, and together they would take longer than a call may, with all other runs behind
// them.

import "time"

const (
	apartAtFirst = 4
	apartMost    = 64
	// apartTime is how long the others wait for one batch, as far as it can be foreseen.
	apartTime = 500 * time.Millisecond
)

// apart are such attempts, in their order, while others go ahead. It belongs to the start
// loop.
type apart struct {
	waiting []attempt
	most    int // how many go together; zero for apartAtFirst
}

// split keeps the attempts of a batch that go apart, and returns the others.
func (p *apart) split(batch []attempt) (plain []attempt) {
	plain = batch[:0]
	for _, a := range batch {
		if a.start.State == StateRefused || len(a.start.Targets) > 0 {
			p.waiting = append(p.waiting, a)
		} else {
			plain = append(plain, a)
		}
	}
	return plain
}

// next takes those out whose turn it is.
func (p *apart) next() []attempt {
	if p.most == 0 {
		p.most = apartAtFirst
	}
	n := min(p.most, len(p.waiting))
	batch := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	return batch
}

// took notes how long n of them took: the next batch is to take apartTime, but is no more
// than twice as large.
func (p *apart) took(n int, d time.Duration) {
	each := max(d/time.Duration(n), time.Microsecond)
	p.most = min(max(1, int(apartTime/each)), 2*p.most, apartMost)
}
