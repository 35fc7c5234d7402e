// The codes of the enum `cudaError_enum` of cust_raw 0.11.3, in ranges. The tests include this file too, and compare it
// with the sources of cust_raw.
[
    0..=8,
    34..=34,
    100..=102,
    200..=202,
    205..=224,
    300..=304,
    400..=401,
    500..=500,
    600..=600,
    700..=705,
    708..=720,
    800..=809,
    900..=911,
    999..=999,
]
