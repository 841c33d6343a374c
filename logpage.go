package xxljob

// Pages of logs in the store: lines, compressed. Input: lines. Output: pages, and the lines
// that they have.

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strings"

	"github.com/xxljob/xxljob/store"
)

// pageBytes is how many bytes of lines a page has before it is compressed, but for a line that
// is longer.
const pageBytes = 32 << 10

// pageWriter makes pages. It is not safe for concurrent use.
type pageWriter struct {
	flate *flate.Writer
	text  []byte
	out   bytes.Buffer
}

// pages are the lines of a run as pages.
func (w *pageWriter) pages(r RunLines, notice bool) (list []store.LogPage, err error) {
	first := r.First
	for i, line := range r.Lines {
		w.text = append(append(w.text, line.Text...), '\n')
		if i == len(r.Lines)-1 || len(w.text)+len(r.Lines[i+1].Text) >= pageBytes {
			page := store.LogPage{RunID: r.RunID, FirstLine: first, LastLine: r.First + i, Size: len(w.text), Notice: notice}
			if page.Content, err = w.compressed(w.text); err != nil {
				return nil, err
			}
			list, first, w.text = append(list, page), r.First+i+1, w.text[:0]
		}
	}
	if cap(w.text) > 16*pageBytes {
		w.text = nil
	}
	return list, nil
}

func (w *pageWriter) compressed(text []byte) ([]byte, error) {
	w.out.Reset()
	if w.flate == nil {
		var err error
		if w.flate, err = flate.NewWriter(&w.out, flate.BestSpeed); err != nil {
			return nil, err
		}
	} else {
		w.flate.Reset(&w.out)
	}
	if _, err := w.flate.Write(text); err != nil {
		return nil, err
	}
	err := w.flate.Close()
	return bytes.Clone(w.out.Bytes()), err
}

// linesOf are the lines of a page from one on, as far as they are within its first bytes: as many
// as it says that it has, but no more than logBytes and pageBytes, beyond which no page of ours
// goes. The numbers of its lines may be any.
func linesOf(p store.LogPage, from int) (string, error) {
	in := flate.NewReader(bytes.NewReader(p.Content))
	text, err := io.ReadAll(io.LimitReader(in, int64(min(p.Size, logBytes+pageBytes))))
	if err != nil {
		return "", fmt.Errorf("the page with line %d: %w", p.FirstLine, err)
	}
	lines := plainText(string(text))
	for n := p.FirstLine; n < from && lines != ""; n++ {
		_, lines, _ = strings.Cut(lines, "\n")
	}
	return lines, nil
}
