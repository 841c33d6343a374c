package executor

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/xxljob/xxljob/wire"
)

// logPart is which lines of a log are asked for: those from one on, or the last ones.
type logPart struct {
	from int // from 1
	tail int // so many of the last ones, if not zero
}

// maxTail bounds the lines of a logPart's tail.
const maxTail = 10_000

// partOf is what a request asks for.
func partOf(req wire.LogRequest) logPart {
	return logPart{from: max(req.FromLineNum, 1), tail: min(max(req.Tail, 0), maxTail)}
}

// none is the answer where there are no lines.
func (p logPart) none() wire.LogResult {
	if p.tail > 0 {
		return wire.LogResult{FromLineNum: 1, Tail: true}
	}
	return wire.LogResult{FromLineNum: p.from}
}

// of returns the lines of a log.
func (p logPart) of(r io.ReadSeeker) (wire.LogResult, error) {
	if p.tail == 0 {
		return readLines(r, p.from)
	}
	res, err := readTail(r, p.tail)
	res.Tail = true
	return res, err
}

// maxPage is about how many bytes of lines one log request is answered with.
const maxPage = 1 << 20

// readLines returns the lines of r from the given one on, as many as a page holds.
// A last line without its end is being written and not returned. Past the end,
// the result's ToLineNum is the last line there is.
func readLines(r io.Reader, from int) (wire.LogResult, error) {
	res := wire.LogResult{FromLineNum: from}
	var page strings.Builder
	var line []byte
	for in := bufio.NewReader(r); page.Len() < maxPage; {
		part, err := in.ReadSlice('\n')
		if wanted := res.ToLineNum+1 >= from; wanted {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			res.ToLineNum++
			page.Write(line)
			line = line[:0]
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			res.LogContent = page.String()
			return res, nil
		default:
			return wire.LogResult{}, err
		}
	}
	res.LogContent = page.String()
	return res, nil
}

// readTail returns the last lines of r, at most n and as many as a page holds, but one at
// least. It reads r once for where its lines begin, of which it keeps n, and once more for
// those that it returns.
func readTail(r io.ReadSeeker, n int) (wire.LogResult, error) {
	begins := make([]int64, 0, min(n, 64)) // of the last lines, a ring once there are n
	in := bufio.NewReader(r)
	end, lines := int64(0), 0
	for at := int64(0); ; {
		part, err := in.ReadSlice('\n')
		at += int64(len(part))
		switch {
		case err == nil:
			if len(begins) < n {
				begins = append(begins, end)
			} else {
				begins[lines%n] = end
			}
			lines++
			end = at
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case !errors.Is(err, io.EOF):
			return wire.LogResult{}, err
		}
		break
	}
	first := lines - len(begins)
	begin := func(line int) int64 { return begins[line%max(len(begins), 1)] }
	for first < lines-1 && end-begin(first) > maxPage {
		first++
	}
	res := wire.LogResult{FromLineNum: first + 1, ToLineNum: lines}
	if first == lines {
		return res, nil
	}
	if _, err := r.Seek(begin(first), io.SeekStart); err != nil {
		return wire.LogResult{}, err
	}
	text := make([]byte, end-begin(first))
	_, err := io.ReadFull(r, text)
	res.LogContent = string(text)
	return res, err
}
