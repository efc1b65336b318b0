package store_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/watchmill/watchmill/store"
)

func ExampleSizeOfLabels() {
	o := &store.Object{Labels: store.LabelsOf(labels.Set{"app": "web"})}

	own := store.SizeOfLabels(func(*store.Object) labels.Set { return labels.Set{"app": "web"} })
	shared := store.SizeOfLabels(func(o *store.Object) labels.Set { return o.Labels.Set() })
	fmt.Println(own(o) > 0, shared(o))
	// Output: true 0
}

func TestSizeOfLabels_TheFirstObjectWithLabelsDecides(t *testing.T) {
	isShared := false
	of := func(o *store.Object) labels.Set {
		if isShared {
			return o.Labels.Set()
		}
		return maps.Clone(o.Labels.Set())
	}
	size := store.SizeOfLabels(of)
	isShared = true
	require.Zero(t, size(&store.Object{}), "it has none, and decides nothing")
	isShared = false
	labelled := &store.Object{Labels: store.LabelsOf(labels.Set{"app": "web"})}
	first := size(labelled)
	require.Positive(t, first)
	isShared = true
	require.Equal(t, first, size(labelled))
	require.Positive(t, size(&store.Object{Labels: store.LabelsOf(labels.Set{"tier": "db"})}))
}
