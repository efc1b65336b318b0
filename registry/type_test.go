package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
)

// Reported is embedded in the types of kinds.
type Reported struct {
	Status WidgetStatus `json:"status"`
}

type (
	// silent has no status.
	silent struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              WidgetSpec `json:"spec"`
	}
	// aside has its status behind a pointer, which the copies of a value share.
	aside struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		*Reported
	}
	// inside has the status of the struct that it embeds.
	inside struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Reported
	}
)

// Described is embedded in the types of kinds.
type Described struct {
	metav1.ObjectMeta `json:"metadata"`
}

type (
	distant struct {
		metav1.TypeMeta `json:",inline"`
		*Described
	}
	// untyped has its kind and version behind a pointer.
	untyped struct {
		*metav1.TypeMeta  `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
)

func newOf[T any, P registry.Ptr[T]](kind registry.Kind) error {
	s, err := registry.New[T, P](registry.Config[T]{Kind: kind})
	if err == nil {
		err = s.Close()
	}
	return err
}

// A write of the status would change nothing.
func TestNew_RefusesAStatusThatTheTypeDoesNotHave(t *testing.T) {
	kind := config().Kind
	for _, err := range []error{newOf[silent](kind), newOf[aside](kind)} {
		var wrong *engine.ConfigError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "Kind.Status", wrong.Field)
		require.ErrorContains(t, err, "has no status")
	}
	_, err := registry.FormatOf(registry.Config[silent]{Kind: kind})
	require.ErrorIs(t, err, engine.ErrConfig)
	require.NoError(t, newOf[inside](kind))
	kind.Status = false
	require.NoError(t, newOf[silent](kind))
	require.NoError(t, newOf[aside](kind))
}

// What a write sets in its copy would be set in the stored object.
func TestNew_RefusesATypeWithItsMetadataInAPointer(t *testing.T) {
	kind := config().Kind
	kind.Status = false
	for _, err := range []error{newOf[distant](kind), newOf[untyped](kind)} {
		var wrong *engine.ConfigError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "T", wrong.Field)
		require.ErrorContains(t, wrong, "in a pointer")
	}
}
