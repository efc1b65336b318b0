package answer

import (
	"compress/gzip"
	"runtime"
	"sync"
)

// Compressor compresses answers by gzip, as many at once as there are processors: with
// more, all would be late. It is safe for concurrent use.
type Compressor struct {
	above int
	slots chan struct{}
}

// NewCompressor returns a compressor of answers that have more than above bytes.
func NewCompressor(above int) *Compressor {
	return &Compressor{above, make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// zippers are gzip writers that are not in use. Their level is that of the API server.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one of gzip's
	return z
}}

// packing is an answer that may turn out to be large enough for compression.
//
//	write ──▶ held ──more than above──▶ gzip ──▶ client
//	            └────no more──────────────────▶ client
type packing struct {
	by   *Compressor
	of   *Writer
	held []byte
	// zip is nil unless the answer is being compressed. plain: it is sent uncompressed, since no slot was free.
	zip   *gzip.Writer
	plain bool
}

// BeginPacked begins an answer whose header waits until it is known whether the answer is
// compressed.
func (w *Writer) BeginPacked(code int, by *Compressor) {
	w.begin(code)
	w.packing = &packing{by: by, of: w}
}

func (p *packing) write(text []byte) (int, error) {
	switch {
	case p.zip != nil:
		return p.zip.Write(text)
	case p.plain:
		return p.of.send(text)
	case len(p.held)+len(text) <= p.by.above:
		p.held = append(p.held, text...)
		return len(text), nil
	}
	p.decide()
	if _, err := p.write(p.held); err != nil {
		return 0, err
	}
	p.held = nil
	return p.write(text)
}

// decide begins to compress, if a slot is free, and sends the header.
func (p *packing) decide() {
	select {
	case p.by.slots <- struct{}{}:
		p.of.Header().Set("Content-Encoding", "gzip")
		p.zip = zippers.Get().(*gzip.Writer)
		p.zip.Reset(sender{p.of})
	default:
		p.plain = true
	}
	p.of.to.WriteHeader(p.of.code)
}

// end sends what is left of the answer.
func (p *packing) end() {
	switch {
	case p.zip != nil:
		_ = p.zip.Close() // if the client is gone, the request's context ends
		p.release()
	case !p.plain:
		p.of.to.WriteHeader(p.of.code)
		_, _ = p.of.send(p.held)
	}
}

// release gives the slot to another answer.
func (p *packing) release() {
	if p.zip != nil {
		zippers.Put(p.zip)
		p.zip = nil
		<-p.by.slots
	}
}

// sender is an [io.Writer] past the compression of an answer.
type sender struct{ of *Writer }

func (s sender) Write(text []byte) (int, error) { return s.of.send(text) }
