package fielderrors_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry/internal/fielderrors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFirst_SaysThatThereAreMore(t *testing.T) {
	var wrong field.ErrorList
	for i := range fielderrors.Most {
		wrong = append(wrong, field.Required(field.NewPath(strconv.Itoa(i)), ""))
	}
	require.Equal(t, wrong, fielderrors.First(wrong))
	told := fielderrors.First(append(wrong, field.Required(field.NewPath("last"), "")))
	require.Equal(t, wrong, told[:fielderrors.Most])
	require.Len(t, told, fielderrors.Most+1)
	require.Equal(t, "Too many: the object has more errors than these 100", told[fielderrors.Most].ErrorBody())
	require.Equal(t, told, fielderrors.First(told), "however often")
}

// An error has the whole list, as often as not, of which one item is wrong.
func TestFirst_LeavesOutValuesThatAreTooLarge(t *testing.T) {
	type item struct{ Name string }
	type cycle struct{ Next *cycle }
	around := &cycle{}
	around.Next = around
	long := strings.Repeat("x", 5000)
	items := make([]item, 5000)
	path := field.NewPath("spec")
	for _, large := range []any{
		items, &items, [5000]byte{}, []byte(long), map[string]any{"a": items}, map[string]int{long: 1}, item{long}, []any{item{long}}, &long, around,
	} {
		wrong := field.ErrorList{field.Invalid(path, large, "no")}
		told := fielderrors.First(wrong)
		require.Equal(t, "spec: Invalid value: no", told[0].Error(), "%T", large)
		require.IsType(t, large, wrong[0].BadValue, "it is the caller's")
	}
	for _, small := range []any{nil, 1, "a", items[:10], (*item)(nil), map[string]any{"a": nil}, []any{item{"a"}, long[:4000]}, time.Time{}} {
		wrong := field.ErrorList{field.Invalid(path, small, "no")}
		require.Equal(t, wrong, fielderrors.First(wrong), "%T", small)
	}
}

// The key of a map is part of a path, and the name of another object part of what is wrong.
func TestFirst_CutsTexts(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	told := fielderrors.First(field.ErrorList{field.Invalid(field.NewPath("a").Key(long), long, long)})
	require.Less(t, len(told[0].Error()), 15_000)
	require.Regexp(t, `^a\[ä+…: Invalid value: "ä+…": ä+…$`, told[0].Error())
}
