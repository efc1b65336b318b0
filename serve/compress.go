package serve

import (
	"compress/gzip"
	"runtime"
	"sync"
)

// compressor compresses answers by gzip, as many at once as there are processors: with
// more, all would be late.
type compressor struct {
	above int
	slots chan struct{}
}

func newCompressor(above int) *compressor {
	return &compressor{above, make(chan struct{}, runtime.GOMAXPROCS(0))}
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
	*compressor
	to   *response
	held []byte
	// zip is nil unless the answer is being compressed. plain: it is sent uncompressed, since no slot was free.
	zip   *gzip.Writer
	plain bool
}

// beginPacked begins an answer whose header waits until it is known whether the answer is
// compressed.
func (r *response) beginPacked(code int, by *compressor) {
	r.begin(code)
	r.packing = &packing{compressor: by, to: r}
}

func (p *packing) write(text []byte) (int, error) {
	switch {
	case p.zip != nil:
		return p.zip.Write(text)
	case p.plain:
		return p.to.send(text)
	case len(p.held)+len(text) <= p.above:
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
	case p.slots <- struct{}{}:
		p.to.Header().Set("Content-Encoding", "gzip")
		p.zip = zippers.Get().(*gzip.Writer)
		p.zip.Reset(sender{p.to})
	default:
		p.plain = true
	}
	p.to.ResponseWriter.WriteHeader(p.to.code)
}

// end sends what is left of the answer.
func (p *packing) end() {
	switch {
	case p.zip != nil:
		_ = p.zip.Close() // if the client is gone, the request's context ends
		p.release()
	case !p.plain:
		p.to.ResponseWriter.WriteHeader(p.to.code)
		_, _ = p.to.send(p.held)
	}
}

// release gives the slot to another answer.
func (p *packing) release() {
	if p.zip != nil {
		zippers.Put(p.zip)
		p.zip = nil
		<-p.slots
	}
}

// sender is an [io.Writer] past the compression of a response.
type sender struct{ to *response }

func (s sender) Write(text []byte) (int, error) { return s.to.send(text) }
