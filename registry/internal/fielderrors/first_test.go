package fielderrors_test

import (
	"strconv"
	"testing"

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
