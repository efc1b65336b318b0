package codec

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// Sealer encrypts values and proves that they are what was sealed.
// Implementations must be safe for concurrent use. It never gains methods.
type Sealer interface {
	// Seal encrypts plain and binds it to aad, which is not part of the result.
	// The caller owns sealed; plain is only read.
	Seal(plain, aad []byte) (sealed []byte, err error)

	// Open returns what was sealed with the same aad. stale: it should be sealed again,
	// because it was sealed with an old key. The caller owns plain; sealed is only read.
	Open(sealed, aad []byte) (plain []byte, stale bool, err error)
}

// AAD returns the bytes that a sealed value is bound to: the name of its type
// and its key. So a value cannot be moved to another object unnoticed.
func AAD(typeName, key string) []byte {
	aad := make([]byte, 0, binary.MaxVarintLen64+len(typeName)+len(key))
	aad = binary.AppendUvarint(aad, uint64(len(typeName)))
	aad = append(aad, typeName...)
	return append(aad, key...)
}

// KeySize is the length of a [Key]'s secret in bytes.
const KeySize = 32

// Key is a secret with a name.
type Key struct {
	// ID names the key, unencrypted, in all that it seals: 1 to 255
	// bytes, such as "2026-09". Another secret needs another ID.
	ID string
	// Secret is [KeySize] random bytes, from a secret store or crypto/rand; not a
	// password.
	Secret []byte
}

// AESGCM seals with AES-256-GCM. Each value has a random nonce of 192 bits, half
// of which goes into a key of its own (this is XAES-256-GCM), so that one secret
// may seal any number of values.
//
// To rotate keys, put the new one first and keep the old one behind it: what the
// old one sealed can be opened, and is said to be stale.
type AESGCM struct {
	first sealingKey
	byID  map[string]sealingKey
}

type sealingKey struct {
	id string
	extendedGCM
}

// NewAESGCM returns a sealer that seals with the first of keys and opens what
// any of them sealed. It copies the secrets. It fails with an [*InvalidKeyError]
// if there is no key, or if one has no usable ID, a secret of another length
// than [KeySize], or the ID of another.
func NewAESGCM(keys ...Key) (*AESGCM, error) {
	if len(keys) == 0 {
		return nil, &InvalidKeyError{Problem: "there is none: give at least one"}
	}
	s := &AESGCM{byID: make(map[string]sealingKey, len(keys))}
	for i, k := range keys {
		key, err := s.prepare(k)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			s.first = key
		}
		s.byID[k.ID] = key
	}
	return s, nil
}

func (s *AESGCM) prepare(k Key) (sealingKey, error) {
	switch {
	case k.ID == "" || len(k.ID) > 255:
		return sealingKey{}, &InvalidKeyError{ID: k.ID, Problem: "the ID must have 1 to 255 bytes"}
	case len(k.Secret) != KeySize:
		return sealingKey{}, &InvalidKeyError{ID: k.ID, Problem: fmt.Sprintf("the secret has %d bytes; it must have %d", len(k.Secret), KeySize)}
	}
	if _, taken := s.byID[k.ID]; taken {
		return sealingKey{}, &InvalidKeyError{ID: k.ID, Problem: "two keys have this ID: name each key differently"}
	}
	gcm, err := newExtendedGCM(k.Secret)
	if err != nil {
		return sealingKey{}, &InvalidKeyError{ID: k.ID, Problem: err.Error()}
	}
	return sealingKey{k.ID, gcm}, nil
}

// sealedVersion begins every sealed value:
//
//	version · length of ID · ID · nonce · ciphertext · tag
//
// Version, ID and nonce are authenticated with the value.
const sealedVersion = 1

// Seal encrypts plain with the first key.
func (s *AESGCM) Seal(plain, aad []byte) ([]byte, error) {
	id := s.first.id
	header := 2 + len(id) + extendedNonceSize
	sealed := make([]byte, 0, header+len(plain)+gcmTagSize)
	sealed = append(sealed, sealedVersion, byte(len(id)))
	sealed = append(sealed, id...)
	sealed = sealed[:header]
	nonce := sealed[header-extendedNonceSize:]
	_, _ = rand.Read(nonce) // it never fails: it would end the program
	return s.first.seal(sealed, nonce, plain, boundTo(sealed[:header], aad))
}

// Open decrypts what Seal made. Stale reports that it was not sealed with the
// first key. It fails with an [*UnknownKeyError] or with [ErrNotAuthentic].
func (s *AESGCM) Open(sealed, aad []byte) (plain []byte, stale bool, err error) {
	id, header, err := splitSealed(sealed)
	if err != nil {
		return nil, false, err
	}
	key, ok := s.byID[string(id)]
	if !ok {
		return nil, false, &UnknownKeyError{ID: string(id)}
	}
	nonce := sealed[header-extendedNonceSize : header]
	plain, err = key.open(nonce, sealed[header:], boundTo(sealed[:header], aad))
	if err != nil {
		return nil, false, fmt.Errorf("%w with the key %q for this object", ErrNotAuthentic, id)
	}
	return plain, key.id != s.first.id, nil
}

// splitSealed returns the ID in a sealed value and the length of what comes
// before the ciphertext.
func splitSealed(sealed []byte) (id []byte, header int, err error) {
	if len(sealed) < 2 || sealed[0] != sealedVersion {
		return nil, 0, fmt.Errorf("%w: it was not sealed by AESGCM", ErrNotAuthentic)
	}
	end := 2 + int(sealed[1]) // which may be more than a byte holds
	header = end + extendedNonceSize
	if len(sealed) < header+gcmTagSize {
		return nil, 0, fmt.Errorf("%w: it is cut off", ErrNotAuthentic)
	}
	return sealed[2:end], header, nil
}

// boundTo returns what is authenticated with the ciphertext. The header tells
// its own length, so no two pairs give the same bytes.
func boundTo(header, aad []byte) []byte {
	both := make([]byte, 0, len(header)+len(aad))
	return append(append(both, header...), aad...)
}
