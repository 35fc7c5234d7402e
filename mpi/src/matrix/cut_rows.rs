//! Rows that are cut between ranks: who sends a piece to whom.

use warprow::multi::Partition;

/// The rank to which a rank sends its first row, which begins on a rank before; `None` if it has no such piece.
pub fn owner_of_piece(partition: &Partition, rank: usize) -> Option<usize> {
    let part = &partition.parts()[rank];
    let row = part.rows.start;
    (row < part.owned.start).then(|| partition.owners().owner(row))
}

/// The ranks that have pieces of a rank's last row, in their order.
pub fn ranks_with_pieces(partition: &Partition, owner: usize) -> Vec<usize> {
    let ranks = owner + 1..partition.parts().len();
    ranks
        .filter(|&rank| owner_of_piece(partition, rank) == Some(owner))
        .collect()
}
