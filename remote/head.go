package remote

import (
	"bytes"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/store"
)

// headBytes is how many bytes of a list are searched for its revision.
const headBytes = 4 << 10

// listHead calls tell with the revision of a list as soon as that has arrived. Servers send it before the objects,
// which may take long. If it is not in the first [headBytes], tell is not called.
type listHead struct {
	from io.Reader
	tell func(store.Revision)
	// read is what has arrived; done: it is not searched any more.
	read []byte
	done bool
}

func (h *listHead) Read(p []byte) (int, error) {
	if h.done {
		return h.from.Read(p)
	}
	n, err := h.from.Read(p[:min(len(p), headBytes/8)]) // without waiting for more
	h.read = append(h.read, p[:n]...)
	rev, known := revisionIn(h.read)
	if h.done = known || len(h.read) >= headBytes; h.done {
		h.read = nil
	}
	if known {
		h.tell(rev)
	}
	return n, err
}

// revisionIn returns the revision in the beginning of a list, if it is there.
func revisionIn(head []byte) (store.Revision, bool) {
	in := json.NewDecoder(bytes.NewReader(head))
	if _, err := in.Token(); err != nil { // the brace
		return 0, false
	}
	for {
		field, err := in.Token()
		if err != nil {
			return 0, false
		}
		var metadata metav1.ListMeta
		if field == "metadata" {
			if in.Decode(&metadata) != nil {
				return 0, false
			}
			rev, err := revisionOf(metadata.ResourceVersion)
			return rev, err == nil
		}
		if in.Decode(new(json.RawMessage)) != nil {
			return 0, false
		}
	}
}
