package codec

import (
	"crypto/aes"
	"crypto/cipher"
)

const (
	extendedNonceSize = 24
	gcmTagSize        = 16
	gcmNonceSize      = 12
)

// extendedGCM is AES-256-GCM with nonces of 24 bytes, as c2sp.org/XAES-256-GCM
// specifies it: the first half of the nonce and the secret give, by AES-CMAC in
// counter mode, the key of one message; the second half is that message's GCM
// nonce. Random nonces of GCM's own 12 bytes would allow only 2^32 messages.
type extendedGCM struct {
	block  cipher.Block
	subkey [aes.BlockSize]byte // CMAC's K1
}

func newExtendedGCM(secret []byte) (extendedGCM, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return extendedGCM{}, err
	}
	x := extendedGCM{block: block}
	block.Encrypt(x.subkey[:], x.subkey[:])
	double(&x.subkey)
	return x, nil
}

// double multiplies b by x in the field that CMAC uses.
func double(b *[aes.BlockSize]byte) {
	carry := b[0] >> 7
	for i := range len(b) - 1 {
		b[i] = b[i]<<1 | b[i+1]>>7
	}
	b[len(b)-1] = b[len(b)-1]<<1 ^ carry*0x87
}

// message returns the cipher for messages whose nonce begins with prefix.
func (x extendedGCM) message(prefix []byte) (cipher.AEAD, error) {
	var key [2 * aes.BlockSize]byte
	for counter := range byte(2) {
		half := key[int(counter)*aes.BlockSize:][:aes.BlockSize]
		half[1], half[2] = counter+1, 'X'
		copy(half[4:], prefix)
		for i := range half {
			half[i] ^= x.subkey[i]
		}
		x.block.Encrypt(half, half)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal appends the ciphertext and its tag to dst.
func (x extendedGCM) seal(dst, nonce, plain, aad []byte) ([]byte, error) {
	gcm, err := x.message(nonce[:gcmNonceSize])
	if err != nil {
		return nil, err
	}
	return gcm.Seal(dst, nonce[gcmNonceSize:], plain, aad), nil
}

func (x extendedGCM) open(nonce, ciphertext, aad []byte) ([]byte, error) {
	gcm, err := x.message(nonce[:gcmNonceSize])
	if err != nil {
		return nil, err
	}
	return gcm.Open(nil, nonce[gcmNonceSize:], ciphertext, aad)
}
