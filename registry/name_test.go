package registry_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/usercode"
)

// A kind may have other names than those of hosts, as Kubernetes' roles have.
func TestName_IsByTheRuleOfTheKind(t *testing.T) {
	cfg := config()
	cfg.Strategy.ValidateName = func(string, bool) []string { return nil }
	s := newStore(t, cfg)
	for _, name := range []string{"system:node", "Upper_Case", "a b", "fe80::1"} {
		create(t, s, widget(name, 1))
	}
	generated := widget("", 1)
	generated.GenerateName = "system:"
	o, err := s.Create(t.Context(), generated, registry.WriteOptions{})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(o.Value.Name, "system:"))

	var wrong *registry.InvalidError
	_, err = newStore(t, config()).Create(t.Context(), widget("system:node", 1), registry.WriteOptions{})
	require.ErrorAs(t, err, &wrong, "by default names are DNS subdomains")
	cfg.Strategy.ValidateName = func(name string, _ bool) []string {
		if name == "bad" {
			return []string{"must not be bad"}
		}
		return nil
	}
	_, err = newStore(t, cfg).Create(t.Context(), widget("bad", 1), registry.WriteOptions{})
	require.ErrorContains(t, err, `metadata.name: Invalid value: "bad": must not be bad`)
}

// Whatever a kind allows, the path of its objects must be one.
func TestName_CannotBeWhatAPathCannotHave(t *testing.T) {
	cfg := config()
	cfg.Strategy.ValidateName = func(string, bool) []string { return nil }
	s := newStore(t, cfg)
	for _, name := range []string{".", "..", "a/b", "a%2fb", `a\b`, "a\x00b", "a\nb", "a\x7fb", "\xff", strings.Repeat("x", 254)} {
		var wrong *registry.InvalidError
		_, err := s.Create(t.Context(), widget(name, 1), registry.WriteOptions{})
		require.ErrorAs(t, err, &wrong, "%q", name)
	}
	create(t, s, widget(strings.Repeat("x", 253), 1))
	generated := widget("", 1)
	generated.GenerateName = "a/b-"
	_, err := s.Create(t.Context(), generated, registry.WriteOptions{})
	require.ErrorContains(t, err, "metadata.generateName")

	cfg.Strategy.ValidateName = func(string, bool) []string { panic("name") }
	_, err = newStore(t, cfg).Create(t.Context(), widget("a", 1), registry.WriteOptions{})
	require.ErrorIs(t, err, usercode.ErrPanic)
}
