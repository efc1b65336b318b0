package answer

import "sync"

// gathered are events that are sent together: as many as nearly fill a frame of HTTP/2, where
// net/http itself makes a frame of each 4 kB.
type gathered struct {
	size int
	text [partOfWatch]byte
}

// gatherings are those not in use. A watch has one only while it sends.
var gatherings = sync.Pool{New: func() any { return new(gathered) }}

// gather keeps p until it is flushed, or a frame is full.
func (w *Writer) gather(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if w.gathered == nil {
			w.gathered = gatherings.Get().(*gathered)
		}
		g := w.gathered
		added := copy(g.text[g.size:], p[n:])
		g.size, n = g.size+added, n+added
		if g.size == len(g.text) {
			err = w.sendGathered()
		}
	}
	w.bytes += int64(n)
	return n, err
}

// sendGathered sends what was gathered.
func (w *Writer) sendGathered() error {
	g := w.gathered
	if g == nil {
		return nil
	}
	w.gathered = nil
	if _, err := w.transmit(g.text[:g.size]); err != nil {
		return err // net/http may still be reading g
	}
	g.size = 0
	gatherings.Put(g)
	return nil
}
