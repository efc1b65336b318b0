package encode

import (
	"bytes"
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve/internal/accept"
)

// List returns the beginning of a list of a kind, and the function that encodes its items, one at a time. Commas
// between them, and "]}" at the end, are the caller's. For tables there is [Table.Head].
func (c *Cache) List(of *registry.Info, as accept.Form, meta metav1.ListMeta) (head []byte, item func(registry.Item) ([]byte, error), err error) {
	if as.Shape == accept.Partial {
		head, err = listHead(PartialVersion, PartialKind+"List", meta)
		return head, c.listItem(as, PartialVersion, PartialKind), err
	}
	gvk := of.Kind.GroupVersionKind()
	head, err = listHead(gvk.GroupVersion().String(), of.Kind.ListGroupVersionKind().Kind, meta)
	if of.Unstructured {
		return head, func(it registry.Item) ([]byte, error) { return c.ForRead(State{it, as}) }, err
	}
	return head, c.listItem(as, gvk.GroupVersion().String(), gvk.Kind), err
}

// listItem returns the function that encodes the items of a list of a Go type, or of metadata
// alone, one at a time. They leave out apiVersion and kind, which the list has: typed clients, and
// those of metadata, decode watch events without them, and compare those with lists. In Kubernetes
// these clients get lists of metadata as protobuf, which has neither.
func (c *Cache) listItem(as accept.Form, version, kind string) func(registry.Item) ([]byte, error) {
	kind, version = strconv.Quote(kind), strconv.Quote(version)
	heads := []string{`{"kind":` + kind + `,"apiVersion":` + version + `,`, `{"apiVersion":` + version + `,"kind":` + kind + `,`}
	var item []byte
	return func(it registry.Item) ([]byte, error) {
		text, err := c.ForRead(State{it, as})
		if err != nil {
			return nil, err
		}
		for _, head := range heads {
			if rest, found := bytes.CutPrefix(text, []byte(head)); found {
				item = append(append(item[:0], '{'), rest...)
				return item, nil
			}
		}
		return text, nil
	}
}

// listHead returns the beginning of a list, up to its items.
func listHead(apiVersion, kind string, meta metav1.ListMeta) ([]byte, error) {
	text, err := json.Marshal(struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   metav1.ListMeta `json:"metadata"`
	}{kind, apiVersion, meta})
	if err != nil {
		return nil, err
	}
	return append(text[:len(text)-1], `,"items":[`...), nil
}
