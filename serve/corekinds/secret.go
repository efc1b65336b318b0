package corekinds

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"maps"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/apply"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/registry/strategic"
)

// Secret returns the configuration of the kind Secret, for [registry.New]. Set its Engine to choose the storage,
// which has the data as it is unless it encrypts.
func Secret() registry.Config[core.Secret] {
	return registry.Config[core.Secret]{
		Kind: registry.Kind{Version: "v1", Kind: "Secret", Plural: "secrets"},
		Columns: []registry.Column[core.Secret]{
			{Name: "Type", Type: "string", Description: "What the data is for.", Value: func(s *core.Secret) any { return string(s.Type) }},
			{Name: "Data", Type: "string", Description: "How many keys it has.", Value: func(s *core.Secret) any { return len(s.Data) }},
		},
		Fields:   map[string]func(*core.Secret) string{"type": func(s *core.Secret) string { return string(s.Type) }},
		Strategy: registry.Strategy[core.Secret]{NoGeneration: true, Default: defaultSecret, Validate: validateSecret, Warn: warnOfSecret},
		Decoders: protobuf.Decoders[core.Secret]("Secret"), StrategicMerge: strategic.New, Apply: apply.New,
	}
}

// defaultSecret sets the type, and turns stringData, which is for writers alone, into data.
func defaultSecret(s *core.Secret) {
	s.Type = cmp.Or(s.Type, core.SecretTypeOpaque)
	if len(s.StringData) > 0 {
		data := maps.Clone(s.Data)
		if data == nil {
			data = map[string][]byte{}
		}
		for key, text := range s.StringData {
			data[key] = []byte(text)
		}
		s.Data = data
	}
	s.StringData = nil
}

func validateSecret(_ context.Context, s, old *core.Secret) (wrong field.ErrorList) {
	if old != nil {
		wrong = validation.ValidateImmutableField(s.Type, old.Type, field.NewPath("type"))
		if isTrue(old.Immutable) {
			wrong = append(wrong, unchanged(s.Immutable, s.Data, old.Data)...)
		}
	}
	path := field.NewPath("data")
	wrong = append(wrong, validateKeys(s.Data, path)...)
	if size(s.Data) > core.MaxSecretSize {
		wrong = append(wrong, field.TooLong(path, "", core.MaxSecretSize))
	}
	return append(wrong, validateType(s, path)...)
}

// validateType refuses a secret that lacks what its type promises.
func validateType(s *core.Secret, path *field.Path) (wrong field.ErrorList) {
	lacks := func(key string) bool { _, has := s.Data[key]; return !has }
	require := func(keys ...string) {
		for _, key := range keys {
			wrong = append(wrong, field.Required(path.Key(key), ""))
		}
	}
	switch s.Type {
	case core.SecretTypeServiceAccountToken:
		if s.Annotations[core.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(core.ServiceAccountNameKey), "")}
		}
	case core.SecretTypeDockercfg:
		return validateJSON(s, path, core.DockerConfigKey)
	case core.SecretTypeDockerConfigJson:
		return validateJSON(s, path, core.DockerConfigJsonKey)
	case core.SecretTypeBasicAuth:
		if lacks(core.BasicAuthUsernameKey) && lacks(core.BasicAuthPasswordKey) {
			require(core.BasicAuthUsernameKey, core.BasicAuthPasswordKey)
		}
	case core.SecretTypeSSHAuth:
		if len(s.Data[core.SSHAuthPrivateKey]) == 0 {
			require(core.SSHAuthPrivateKey)
		}
	case core.SecretTypeTLS:
		for _, key := range []string{core.TLSCertKey, core.TLSPrivateKeyKey} {
			if lacks(key) {
				require(key)
			}
		}
	}
	return wrong
}

// validateJSON refuses a secret that has no object of JSON under a key. It quotes nothing of it.
func validateJSON(s *core.Secret, path *field.Path, key string) field.ErrorList {
	text, has := s.Data[key]
	if !has {
		return field.ErrorList{field.Required(path.Key(key), "")}
	}
	if err := json.Unmarshal(text, &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(path.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

// warnOfSecret warns of a certificate that does not go with its key.
func warnOfSecret(_ context.Context, s, _ *core.Secret) []string {
	if s.Type != core.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(s.Data[core.TLSCertKey], s.Data[core.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}
