package encode

import (
	"cmp"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
	"github.com/watchmill/watchmill/usercode"
)

// State is a state of an object in a form: whole or partial, and with or without managed fields.
type State struct {
	Item registry.Item
	accept.Form
}

// Encode returns the item as JSON. A panic of the kind's own encoding is an error, even for
// the readers that share it. Its other errors are such that clients do not repeat the request, which
// would fail again, and may be a write that was done.
func (s State) Encode() (text []byte, err error) {
	panicked := usercode.Call("MarshalJSON", s.Item.Key(), func() {
		switch {
		case s.Shape == accept.Partial:
			text, err = encodePartial(s.Item, s.Lean)
		case s.Lean:
			text, err = s.Item.LeanJSON()
		default:
			text, err = s.Item.JSON()
		}
	})
	if err != nil && !errors.Is(err, usercode.ErrPanic) {
		err = apierrors.NewInternalError(err)
	}
	return text, cmp.Or(panicked, err)
}

// The kind and the version of an item's metadata.
const (
	PartialKind    = "PartialObjectMetadata"
	PartialVersion = metav1.GroupName + "/v1"
)

// encodePartial returns an item's metadata as a PartialObjectMetadata, without managed
// fields if lean.
func encodePartial(item registry.Item, lean bool) ([]byte, error) {
	p := meta.AsPartialObjectMetadata(item.Meta())
	if rev := item.Revision(); rev > 0 {
		p.ResourceVersion = rev.String()
	}
	if lean {
		p.ManagedFields = nil
	}
	p.Kind, p.APIVersion = PartialKind, PartialVersion
	return json.Marshal(p)
}
